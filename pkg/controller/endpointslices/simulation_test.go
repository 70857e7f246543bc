// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// run lets one history happen. It returns what was seen in it, and the rule that was broken, if any.
func run(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(seed, m, trace)
		seen = e.Seen
		for range 20 + e.Dice.IntN(150) {
			e.step()
		}
		e.becalm()
		e.stabilize()
		e.checkRest()
	})
	return seen, broken
}

var histories = simulation.Histories[mutant]{
	Run: run, Number: 700, Long: 700,
	Wanted: []string{
		"Services taken", "Services given back", "Services created with the label", "Services shared", "Services changed by others", "slices created", "slices deleted",
		"slices deleted by others", "pods that ended", "views", "views that ended", "slices refused at first", "events", "requests in trouble", "kills of the controller", "failed syncs", "conflicts",
		"refused: create endpointslice", "refused: update endpointslice", "refused: delete endpointslice", "refused: patch service",
		"sets in which pods move: many", "sets in which pods move: few", "sets in which pods move: none",
		"sets deleted: Background", "sets deleted: Foreground", "sets deleted: Orphan",
		"at rest: no Service", "at rest: by the cluster", "at rest: by us",
	},
}

// TestHistories runs random histories.
func TestHistories(t *testing.T) { histories.Test(t) }
