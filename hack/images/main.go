// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images builds the images of the programs that run in a cluster, packs the kubectl plugin and the chart, makes releases of all of
// them, and pushes them, without a container engine. The same commit and version of Go give the same bytes, whoever builds. See
// docs/development.md and docs/release.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// command is one of the things that the program does.
type command struct {
	name string
	run  func(ctx context.Context, args []string, out io.Writer) error
}

var commands = []command{
	{"build", runBuild}, {"push", runPush}, {"plugin", runPlugin}, {"chart", runChart},
	{"render", runRender}, {"licenses", runLicenses}, {"release", runRelease}, {"verify", runVerify}, {"publish", runPublish},
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	list := strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	if len(args) == 0 {
		return fmt.Errorf("a command is required: %s", list)
	}
	i := slices.Index(names, args[0])
	if i < 0 {
		return fmt.Errorf("the command must be %s, is %q", list, args[0])
	}
	return commands[i].run(ctx, args[1:], out)
}
