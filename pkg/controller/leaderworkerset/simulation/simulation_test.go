// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// histories are the histories of one set.
var histories = simulation.Histories[mutant]{
	Run: run, Faultless: faultless, Number: 3_000, Decisions: "decisions",
	Wanted: []string{
		"refusals that last: create statefulset", "refusals that last: create service", "refusals that last: create revision", "refusals that last: create podgroup",
		"refusals that last: apply statefulset", "refusals that last: patch statefulset", "refusals that last: patch service", "refusals that last: patch revision",
		"refusals that last: delete pod", "refusals that last: delete revision", "refusals that last: update status", "second controllers", "leaders deleted without their children",
		"adoptions", "children that lost their owner", "deletions without children", "names of others that were reported", "names of Services that others took with the label of the set", "names that others took",
		"applies of the leader statefulset", "conflicts", "conflicts of applies", "deletions", "edits", "failed syncs", "groups created",
		"groups that have used up their restarts", "kills of the controller", "leaders deleted", "leaders that others deleted", "pods deleted before they started", "pods created", "pods deleted by others", "pods replaced by a rolling update",
		"pods that failed", "pods that vanished", "pods that were lost", "requested restarts that ended", "requests in trouble", "restarts of containers",
		"restarts on request", "restarts that count", "revisions created", "revisions deleted by others", "rollbacks", "rolling updates", "statefulsets deleted by others", "steps of rolling updates",
		"groups placed in a domain", "leader statefulsets edited by others", "outages", "pods lost with their node", "pods refused", "pods that waited for their gang",
		"revisions lost in use", "scalings", "times without a controller", "workers lost without a controller",
		"syncs put off because a cache lagged", "at rest: available", "at rest: broken", "at rest: gone", "at rest: paused",
	},
}

// run lets one history happen. It returns what was seen in it, and the rule that was broken, if any.
func run(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	if m.finish == nil {
		m.finish = plan.Finish
	}
	broken = simulation.Guarded(func() {
		e := newEnv(seed, m, trace)
		seen = e.Seen
		for range 20 + e.Dice.IntN(90) {
			e.step()
		}
		if e.Dice.Percent(20) {
			e.endure()
		}
		e.stabilize()
		e.checkRest()
	})
	return seen, broken
}

// TestHistories runs random histories.
func TestHistories(t *testing.T) { histories.Test(t) }
