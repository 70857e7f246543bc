// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// lint is golangci-lint with the linter of the Kubernetes API conventions as a plugin.
package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	_ "sigs.k8s.io/kube-api-linter" // registers itself
)

func main() {
	if err := commands.Execute(commands.BuildInfo{Version: "with kube-api-linter", GoVersion: runtime.Version()}); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(exitcodes.Failure)
	}
}
