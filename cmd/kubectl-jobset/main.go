// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// kubectl-jobset is the kubectl plugin for JobSets: `kubectl jobset why NAME`. See docs/kubectl.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := kubectl.NewCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return
	}
	var code cli.ExitCode
	if errors.As(err, &code) {
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "error:", kubectl.Explain(err))
	os.Exit(1)
}
