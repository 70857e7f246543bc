// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command helm makes those templates of the chart that the manifests in artifacts/ decide. hack/images packs the chart.
//
//	go run -C hack/helm . generate
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// chartDir is the chart, relative to the root of the repository.
var chartDir = filepath.Join("charts", "jobset-apiserver")

func main() {
	if err := run(filepath.Join("..", ".."), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}

// run executes one command in a checkout of the repository.
func run(root string, args []string) error {
	if len(args) != 1 || args[0] != "generate" {
		return fmt.Errorf("the command must be generate, is %q", args)
	}
	return generate(root)
}
