// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command jobset-bench measures what JobSets cost.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command.New().ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}
