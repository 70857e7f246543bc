// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// histories are the histories of the groups of one name.
var histories = simulation.Histories[mutant]{
	Run: run, Number: 1_000, Long: 1_000,
	Wanted: []string{
		"pods labeled", "labels removed by users", "patches of pods that were replaced", "pods deleted", "pods: Failed", "pods: Succeeded", "jobs read", "jobs scaled",
		"jobs deleted: Background", "jobs deleted: Foreground", "jobs deleted: Orphan", "groups created", "groups edited",
		"groups deleted: Background", "groups deleted: Foreground", "groups deleted: Orphan", "conflicts", "failed syncs", "kills of the controller", "requests in trouble",
		"refused: patch pod", "refused: get job", "refusals for long", "refusals made visible: patch pod", "refusals made visible: get job",
		"status: Pending", "status: Ready", "status: Degraded", "syncs put off because a cache lagged",
		"events: GroupReady", "events: GroupDegraded", "events: InvalidPodGroupSize", "events: PodGroupLabelFailed", "events: PodGroupSizeUnknown",
		"at rest: no PodReadinessGroup", "at rest: Pending", "at rest: Ready", "at rest: Degraded",
	},
}

// run lets one history happen. It returns what was seen in it, and the rule that was broken, if any.
func run(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(seed, m, trace)
		seen = e.Seen
		for range 20 + e.Dice.IntN(120) {
			e.step()
		}
		e.calm()
		if e.Dice.Percent(30) {
			e.endure()
			e.calm()
		}
		e.stabilize()
		e.checkRest()
	})
	return seen, broken
}

// TestHistories runs random histories.
func TestHistories(t *testing.T) { histories.Test(t) }
