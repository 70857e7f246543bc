// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// histories are the histories of DisaggregatedSets.
var histories = simulation.Histories[mutant]{
	Run: run, Faultless: faultless, Number: 800, Long: 1_600, Decisions: "decisions",
	// What histories must contain, so that a simulation which no longer gets somewhere does not pass for a good one.
	Wanted: []string{
		"conflicts", "deletions: Background", "deletions: Foreground", "deletions: Orphan", "edits: image", "edits: mode", "edits: slices", "edits: roles", "edits: all at 0", "edits refused",
		"roles scaled", "objects of others", "adoptions", "children that lost their owner", "events: AdoptedChild", "events: FailedAdopt", "refusals by verb", "passes with refusals", "passes whose time ended", "groups that fail", "children created", "children deleted by others",
		"scalers created", "steps of updates", "kills of the controller", "requests in trouble", "failed syncs", "events: ScalerConflict", "events: FailedCreate", "events: FailedUpdate",
		"events: FailedDelete", "events: RollingUpdateCompleted", "at rest: gone", "at rest: available", "at rest: at 0", "at rest: scaled roles", "at rest: an update that stands still",
	},
}

// run lets one history happen. It returns what was seen in it, and the rule that was broken, if any.
func run(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(seed, m, trace)
		seen = e.Seen
		for range 40 + e.Dice.IntN(250) {
			e.step()
		}
		e.stabilize()
		e.checkRest()
	})
	return seen, broken
}

// TestHistories runs random histories.
func TestHistories(t *testing.T) { histories.Test(t) }
