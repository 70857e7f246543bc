// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver tests the API server as its users meet it: the real program, with a real etcd, behind a real
// kube-apiserver.
package apiserver

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/integration/framework"
)

// plane is the main cluster of all tests of this package.
var plane *framework.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if plane, err = framework.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	defer func() {
		if err := plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		}
	}()
	return m.Run()
}
