// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images builds the images of the programs that run in a cluster, pushes them, and packs the kubectl plugin, without a container
// engine. The same commit and version of Go give the same bytes, whoever builds. See docs/development.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("a command is required: build, push or plugin")
	}
	switch command, rest := args[0], args[1:]; command {
	case "build":
		return runBuild(ctx, rest, out)
	case "push":
		return runPush(ctx, rest, out)
	case "plugin":
		return runPlugin(ctx, rest, out)
	default:
		return fmt.Errorf("the command must be build, push or plugin, is %q", command)
	}
}

func runBuild(ctx context.Context, args []string, out io.Writer) error {
	var r release
	fs := flag.NewFlagSet("build", flag.ContinueOnError)
	r.flags(fs)
	registry := fs.String("registry", "", "registry and path that nodes know the images by; the default is what nodes add to names without "+
		"a registry")
	platforms := fs.String("platforms", "", "platforms that images are built for, separated by commas; all by default")
	if err := parse(fs, args); err != nil {
		return err
	}
	selected, err := parsePlatforms(*platforms)
	if err := errors.Join(r.validate(), err); err != nil {
		return err
	}
	return buildImages(ctx, &r, servers, imageOptions{Registry: *registry, Platforms: selected}, out)
}

func runPush(ctx context.Context, args []string, out io.Writer) error {
	var registry oci.Registry
	fs := flag.NewFlagSet("push", flag.ContinueOnError)
	output := fs.String("output", "", "directory with the archives")
	fs.StringVar(&registry.Prefix, "registry", "", "host of the registry and path below it: registry.example.com/team")
	fs.BoolVar(&registry.PlainHTTP, "plain-http", false, "use HTTP without TLS; registries on this machine need no permission")
	if err := parse(fs, args); err != nil {
		return err
	}
	if registry.Prefix == "" {
		return errors.New("a registry is required: make push REGISTRY=registry.example.com/team")
	}
	return pushImages(ctx, *output, servers, registry, out)
}

func runPlugin(ctx context.Context, args []string, out io.Writer) error {
	var r release
	fs := flag.NewFlagSet("plugin", flag.ContinueOnError)
	r.flags(fs)
	base := fs.String("url", "", "address below which the archives are published; the default is the release of the version")
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := r.validate(); err != nil {
		return err
	}
	return buildPlugin(ctx, &r, plugin, *base, out)
}

// parse parses flags, and accepts nothing else.
func parse(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%s takes no arguments, has %q", fs.Name(), fs.Args())
	}
	return nil
}
