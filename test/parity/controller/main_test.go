// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller has a test for every row of upstream's webhook tests (docs/compatibility.md#admission) and of its
// controller tests (docs/compatibility.md#controller), named after the row. API servers and controller are the real
// programs. The Job controller and the garbage collector are played by the tests, which so decide when a Job becomes
// ready, ends or disappears.
package controller

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/parity/fixture"
)

// Feature gates apply to the process, so the rows that need them have a control plane of their own.
const (
	released = "released" // defaults
	gated    = "gated"    // RestartJob, ElasticJobSet and InPlaceRestart are on
)

var stacks map[string]*fixture.Stack

func TestMain(m *testing.M) {
	suite.Main("parity", func() (int, error) { return runSuite(m) })
}

// runSuite stops what it started whatever ends the tests.
func runSuite(m *testing.M) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	stacks, err = fixture.StartAll(ctx, map[string]string{
		released: "", gated: "RestartJob=true,ElasticJobSet=true,InPlaceRestart=true",
	})
	defer func() {
		failed := err != nil || code != 0
		for _, stack := range stacks {
			if failed {
				err = errors.Join(err, stack.KeepLogs())
			}
			err = errors.Join(err, stack.Stop())
		}
	}()
	if err != nil {
		return 0, err
	}
	return suite.Run(ctx, m)
}
