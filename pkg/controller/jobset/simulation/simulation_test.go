// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// histories are the histories of one set. There are enough of them to see every kind of event.
var histories = simulation.Histories[mutant]{
	Run: run, Faultless: faultless, Number: 4_000, Long: 4_000,
	Wanted: []string{
		"syncs", "failed syncs", "syncs put off because a cache lagged", "requests in trouble", "kills of the controller", "conflicts", "statuses held back",
		"names taken", "full plans", "Jobs created", "Jobs resumed", "restarts of sets", "restarts of single Jobs", "restarts of several Jobs at once",
		"completed sets", "failed sets", "sets deleted after their time to live", "sets created again", "restarts that wait for the last Job to be gone",
		"restarts before the Job had failed", "Jobs that stop while the others run", "deadlines that were over", "executions counted",
		"suspensions that were taken back too late", "Jobs suspended by others", "conflicts of names told", "Jobs denied by name", "statuses denied", "refusals of Jobs told",
		"refusals of Jobs that are over", "waits for nodes told", "refusals of pods told", "Jobs whose labels were restored", restartRequests, partRequests,
		suspendRequests, resumeRequests, cancelRequests, retryRequests, "first causes told", "ends running", "ends suspended", "ends finished", "ends deleted",
	},
}

// run lets one history happen. It returns what was seen in it, and the rule that was broken, if any.
func run(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	var e *env
	broken = simulation.Guarded(func() {
		e = newEnv(seed, m, trace)
		seen = e.Seen
		for range 20 + e.Dice.IntN(120) {
			e.step()
		}
		e.stabilize(seed%refusedLast == 0)
		e.checkRest()
	})
	if broken != "" && trace != nil && e != nil {
		broken += "\n" + describeSpec(e)
	}
	return seen, broken
}

// TestHistories runs random histories.
func TestHistories(t *testing.T) { histories.Test(t) }
