// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// jobset-apiserver serves JobSets behind kube-apiserver. See docs/server.md.
package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/run"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecommand"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	cmd, err := run.NewCommand(storecommand.NewCommand(streams))
	if err == nil {
		cmd.SetContext(server.SetupSignalContext())
		err = cli.RunNoErrOutput(cmd)
	}
	var code storecommand.ExitCode
	if errors.As(err, &code) {
		os.Exit(int(code))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", flagerror.OneLine(err))
		os.Exit(1)
	}
}
