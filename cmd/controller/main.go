// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command jobset-controller turns JobSets into Jobs, Services and volume claims.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/component-base/cli"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", flagerror.OneLine(err))
		os.Exit(1)
	}
}

func run() error {
	cmd, err := options.NewCommand()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// The first signal ends the work in good order, the second one the process.
	context.AfterFunc(ctx, stop)
	cmd.SetContext(ctx)
	return cli.RunNoErrOutput(cmd)
}
