// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// jobset-apiserver serves JobSets behind kube-apiserver. See docs/server.md.
package main

import (
	"fmt"
	"os"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
)

func main() {
	cmd, err := options.NewCommand()
	if err == nil {
		cmd.SetContext(server.SetupSignalContext())
		err = cli.RunNoErrOutput(cmd)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", options.OneLine(err))
		os.Exit(1)
	}
}
