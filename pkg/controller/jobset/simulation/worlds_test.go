// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// repeated is the share of the worlds that are run twice: one of so many.
const repeated = 20

// worlds are histories of sets that share a cluster.
var worlds = simulation.Histories[worldMutant]{
	Run: runRepeated, Number: 1_000, Long: 1_000, Decisions: "decisions", One: "SIMULATION_WORLD", Many: "SIMULATION_WORLDS",
	Wanted: []string{
		"Jobs that failed", "conflicts", "events AvoidedNodesForgotten", "events JobMoved", "events NodesAvoided", "failed syncs", "kills of the controller", "moves",
		"nodes added by the autoscaler", "pods of exclusive Jobs bound", "preemptions", "requests in trouble", "restarts of sets", "restarts of single Jobs",
		"sets at rest suspended", "sets placed by the scheduler", "waits for a domain",
	},
}

// runWorld lets one history of a world happen. It returns what was seen in it, and the rule that was broken, if any.
func runWorld(seed uint64, m worldMutant, trace *[]string) (seen map[string]int, broken string) {
	broken = simulation.Guarded(func() {
		w := newWorld(seed, m, trace)
		seen = w.Seen
		for range 60 + w.Dice.IntN(400) {
			w.step()
		}
		w.stabilize()
	})
	return seen, broken
}

// runRepeated runs some of the histories twice, and compares what happened.
func runRepeated(seed uint64, m worldMutant, trace *[]string) (map[string]int, string) {
	if seed%repeated != 0 || trace != nil {
		return runWorld(seed, m, trace)
	}
	var once, again []string
	seen, broken := runWorld(seed, m, &once)
	if _, second := runWorld(seed, m, &again); broken == "" && (second != "" || !slices.Equal(once, again)) {
		at := 0
		for at < min(len(once), len(again)) && once[at] == again[at] {
			at++
		}
		broken = fmt.Sprintf("rule %q: %q after %d steps, first %q, then %q", sameOutput, second, at, once[at:min(at+1, len(once))], again[at:min(at+1, len(again))])
	}
	return seen, broken
}

// TestWorlds runs histories of sets that share a cluster.
func TestWorlds(t *testing.T) { worlds.Test(t) }
