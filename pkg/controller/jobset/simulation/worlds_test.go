// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	sim "github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	// worlds are run unless SIMULATION_WORLDS says otherwise.
	worlds = 1_000
	// repeated is the share of the worlds that are run twice: one of so many.
	repeated = 20
)

// runWorld lets one history of a world happen. It returns what was seen in it, and the rule that was broken, if any.
func runWorld(seed uint64, m worldMutant, trace *[]string) (seen map[string]int, broken string) {
	broken = sim.Guarded(func() {
		w := newWorld(seed, m, trace)
		seen = w.seen
		for range 60 + w.dice.IntN(400) {
			w.step()
		}
		w.stabilize()
	})
	return seen, broken
}

// runRepeated runs some of the histories twice, and compares what happened.
func runRepeated(seed uint64, m worldMutant) (map[string]int, string) {
	if seed%repeated != 0 {
		return runWorld(seed, m, nil)
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
func TestWorlds(t *testing.T) {
	if seed, given := sim.Number(t, "SIMULATION_WORLD"); given {
		var trace []string
		_, broken := runWorld(seed, worldMutant{}.complete(), &trace)
		t.Logf("world %d:\n%s", seed, strings.Join(trace, "\n"))
		if broken != "" {
			t.Fatal(broken)
		}
		return
	}
	n := uint64(worlds)
	if given, ok := sim.Number(t, "SIMULATION_WORLDS"); ok {
		n = given
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	first, begin := firstSeed(t), time.Now()
	got := sim.RunMany(first, int(n), func(seed uint64) (map[string]int, string) { return runRepeated(seed, worldMutant{}.complete()) })
	if got.Broken != "" {
		var trace []string
		_, again := runWorld(got.Seed, worldMutant{}.complete(), &trace)
		steps := trace[max(0, len(trace)-shown):]
		t.Fatalf("world %d broke %s\nand again %s\nlast %d of %d steps:\n%s\nto see it all: SIMULATION_WORLD=%d go test -run TestWorlds -v",
			got.Seed, got.Broken, again, len(steps), len(trace), strings.Join(steps, "\n"), got.Seed)
	}
	t.Logf("%d worlds from seed %d on in %s", got.Done, first, time.Since(begin).Round(time.Second/10))
	for _, what := range slices.Sorted(maps.Keys(got.Seen)) {
		t.Logf("%10d %s", got.Seen[what], what)
	}
	for _, what := range wantedInWorlds {
		if got.Seen[what] == 0 && n >= worlds {
			t.Errorf("the worlds never saw: %s", what)
		}
	}
}

// wantedInWorlds is what worlds must contain, so that a simulation which no longer gets somewhere does not pass for a good one.
var wantedInWorlds = []string{
	"Jobs that failed", "conflicts", "events AvoidedNodesForgotten", "events JobMoved", "events NodesAvoided", "failed syncs", "kills of the controller", "moves",
	"nodes added by the autoscaler", "pods of exclusive Jobs bound", "preemptions", "requests in trouble", "restarts of sets", "restarts of single Jobs",
	"sets at rest suspended", "sets placed by the scheduler", "waits for a domain",
}
