// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue_test

import (
	"testing"
	"testing/synctest"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

type memoryRequest = memory.Request

// sent returns the requests of the present process.
func (e *env) sent() []memoryRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests[:len(e.requests):len(e.requests)]
}

func newHistories(t *testing.T) simulation.Histories[mutant] {
	t.Helper()
	return simulation.Histories[mutant]{
		Run: func(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
			left := simulation.Guarded(func() {
				synctest.Test(t, func(*testing.T) {
					var e *env
					broken = simulation.Guarded(func() {
						e = newEnv(seed, m, trace)
						seen = e.Seen
						for range 10 + e.Dice.IntN(60) {
							e.step()
						}
						e.stabilize()
					})
					e.process.cancel()
					<-e.process.ended
					e.weather.Clear()
					e.server.EndWatches(false)
					e.pass(2 * minute) // requests that hang end
				})
			})
			if broken == "" {
				broken = left
			}
			return seen, broken
		},
		// The rarest event of those wanted is in one of 4 histories: all of these lack it less than once in a million runs.
		Number:    150,
		Long:      1_000,
		Decisions: "views that are known",
		Wanted: []string{
			"availability 0", "availability 1", "availability 2", "at rest: 1", "at rest: 2", "restarts", "removals", "ends of watches", "trouble of discovery",
			"trouble of list", "trouble of watch", "Workloads replaced", "views that are known",
		},
	}
}

// TestHistories runs random histories.
func TestHistories(t *testing.T) { newHistories(t).Test(t) }
