// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/licenses"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
)

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
	return buildImages(ctx, &r, imagePrograms, imageOptions{Registry: *registry, Platforms: selected}, out)
}

func runPush(ctx context.Context, args []string, out io.Writer) error {
	var registry oci.Registry
	fs := flag.NewFlagSet("push", flag.ContinueOnError)
	output := fs.String("output", "", "directory with the archives")
	registerRegistry(fs, &registry)
	if err := parse(fs, args); err != nil {
		return err
	}
	if registry.Prefix == "" {
		return errors.New("a registry is required: make push REGISTRY=registry.example.com/team")
	}
	return pushImages(ctx, *output, imagePrograms, registry, out)
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
	return buildPlugin(ctx, &r, plugin, pluginOptions{URL: *base}, out)
}

func runLicenses(ctx context.Context, args []string, out io.Writer) error {
	var source golang.Source
	fs := flag.NewFlagSet("licenses", flag.ContinueOnError)
	fs.StringVar(&source.Dir, "source", "", "root directory of the module with the programs")
	file := fs.String("policy", "", "file that lists the licenses that modules may have")
	if err := parse(fs, args); err != nil {
		return err
	}
	if source.Dir == "" || *file == "" {
		return errors.New("--source and --policy are required")
	}
	policy, err := licenses.ReadPolicy(*file)
	if err != nil {
		return err
	}
	modules, err := collectLicenses(ctx, source, imagePrograms, plugin)
	if err != nil {
		return err
	}
	if err := policy.Check(modules); err != nil {
		return err
	}
	fmt.Fprintf(out, "licenses of %d modules are allowed\n", len(modules))
	return nil
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
