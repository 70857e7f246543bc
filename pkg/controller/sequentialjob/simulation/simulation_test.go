// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// histories are the histories of one sequence.
var histories = simulation.Histories[mutant]{
	Run: run, Faultless: faultless, Number: 3_000, Decisions: "decisions",
	Wanted: []string{
		"actions: restart", "actions: suspend", "actions: resume", "actions: cancel", "actions: retry", "admissions", "conflicts",
		"deletions", "deletionsorphan", "deletionsforegroundDeletion", "second controllers", "children that lost their labels", "decisions without knowledge of Kueue",
		"refusals that last: create child", "refusals that last: delete child", "refusals that last: patch child", "refusals that last: patch sequence",
		"refusals that last: update status",
		"edits", "edits refused",
		"ends: AllJobsCompleted", "ends: DeadlineExceeded", "ends: JobFailed", "failed syncs", "kills of the controller", "restarts by an edit", "requests in trouble",
		"children: Failed", "children: Succeeded", "children created", "children that vanished", "children deleted by others", "children suspended or resumed",
		"sequences deleted after their time to live", "syncs put off because a cache lagged",
		"jobs that outlive their jobset", "pods that outlive their child", "steps that waited for pods",
		"at rest: gone", "at rest: Running", "at rest: Waiting", "at rest: Suspended", "at rest: Completed", "at rest: Failed", "at rest: managed by another controller",
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
		for range 20 + e.Dice.IntN(120) {
			e.step()
		}
		if e.Dice.Percent(25) {
			e.endure()
		}
		e.checkRest(e.stabilize())
	})
	return seen, broken
}

// TestHistories runs random histories.
func TestHistories(t *testing.T) { histories.Test(t) }
