// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command localcluster does the work of hack/cluster.sh. Its first argument is the checkout.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

func main() {
	args := os.Args[2:]
	if len(args) > 0 && slices.Contains([]string{"-h", "--help", "help"}, args[0]) {
		fmt.Print(localcluster.Usage)
		return
	}
	err := localcluster.Command(context.Background(), os.Args[1], args)
	switch {
	case err == nil:
	case errors.Is(err, localcluster.ErrUsage):
		fmt.Fprint(os.Stderr, localcluster.Usage)
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
