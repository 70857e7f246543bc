// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"testing"
	"testing/synctest"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

func newHistories(t *testing.T) simulation.Histories[mutant] {
	t.Helper()
	return simulation.Histories[mutant]{
		Run: func(seed uint64, m mutant, trace *[]string) (map[string]int, string) {
			return run(t, seed, m, trace, hardships{})
		},
		// The rarest event of those wanted is in one of 7.5 histories: all of these lack it less than once in a million runs.
		Number:    120,
		Long:      240,
		Decisions: "writes of Workloads",
		Wanted: []string{
			"admissions", "at rest: ended", "at rest: gone", "at rest: suspended", "deletions", "evictions", "pods that run", "removals", "restarts",
			"steps that complete", "suspensions", "trouble of apply", "trouble of create", "trouble of get", "trouble of patch", "writes of Workloads",
		},
	}
}

// TestHistories runs random histories.
// run lets one history happen in a bubble.
func run(t *testing.T, seed uint64, m mutant, trace *[]string, lasting hardships) (seen map[string]int, broken string) {
	t.Helper()
	left := simulation.Guarded(func() {
		synctest.Test(t, func(*testing.T) {
			var e *env
			broken = simulation.Guarded(func() {
				e = newEnv(seed, m, trace)
				seen = e.Seen
				e.begin(lasting)
				for range 20 + e.Dice.IntN(80) {
					e.step()
				}
				e.stabilize()
			})
			e.stop()
			e.stopRival()
			e.weather.Clear()
			e.server.EndWatches(false)
			e.pass(2 * minute) // requests that hang end
			e.Seen["writes of Workloads"] = e.changes
		})
	})
	if broken == "" {
		broken = left
	}
	return seen, broken
}

func TestHistories(t *testing.T) { newHistories(t).Test(t) }
