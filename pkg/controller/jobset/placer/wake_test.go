// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// TestSetIsWokenAsSoonAsNodesAreKnown has the first set of a cluster, for which the watches begin. Nothing is gathered then: no change of a
// node or a pod has made room.
func TestSetIsWokenAsSoonAsNodesAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0))
		js := e.set("js", 1, 0)
		if _, got := e.ask(js); got != "unknown" {
			t.Fatalf("the Job is at %q before nodes are known", got)
		}
		for synctest.Wait(); e.watch.Current() == nil; e.clock.Step(time.Millisecond) {
		}
		e.clock.Step(time.Millisecond)
		e.mu.Lock()
		woken := e.woken["js"]
		e.mu.Unlock()
		if !woken {
			t.Error("the set is not woken within a millisecond")
		}
		if _, got := e.ask(js); got != "a" {
			t.Errorf("the Job is at %q", got)
		}
	})
}
