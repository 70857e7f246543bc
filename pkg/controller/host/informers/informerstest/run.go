// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informerstest runs controllers in tests.
package informerstest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// Run fills the caches of a controller, and runs it until the test ends. It is called in the bubble of the test.
func Run(t *testing.T, factory *informers.Factory, kind *informers.Kind, run func(context.Context)) {
	t.Helper()
	watches, err := factory.Build(kind)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	watches.Start(ctx)
	synctest.Wait()
	// A server that refuses an optional resource for some time is one for which the controller has no permission.
	for begun := time.Now(); len(kind.Unfilled()) > 0; synctest.Wait() {
		if time.Since(begun) > time.Minute {
			t.Fatalf("unfilled caches: %v", kind.Unfilled())
		}
		time.Sleep(time.Second)
	}
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		synctest.Wait()
	})
}
