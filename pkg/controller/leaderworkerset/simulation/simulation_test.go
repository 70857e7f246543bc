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

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	// histories are run unless SIMULATION_HISTORIES says otherwise.
	histories = 3_000
	// shown is the number of steps that are printed of a history with a broken rule.
	shown = 60
)

// run lets one history happen. It returns what was seen in it, and the rule that was broken, if any.
func run(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(seed, m, trace)
		seen = e.seen
		for range 20 + e.dice.IntN(90) {
			e.step()
		}
		e.settle()
		e.checkRest()
	})
	return seen, broken
}

// TestHistories runs histories that nobody has thought of.
func TestHistories(t *testing.T) {
	if seed, given := simulation.Number(t, "SIMULATION_SEED"); given {
		var trace []string
		_, broken := run(seed, faultless, &trace)
		t.Logf("history %d:\n%s", seed, strings.Join(trace, "\n"))
		if broken != "" {
			t.Fatal(broken)
		}
		return
	}
	n := uint64(histories)
	if given, ok := simulation.Number(t, "SIMULATION_HISTORIES"); ok {
		n = given
	}
	// A history leaves little behind, so collecting it less often is cheap.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	// The same in every run, so that a failure is that of a change. To look for other defects, SIMULATION_FIRST begins elsewhere.
	first, _ := simulation.Number(t, "SIMULATION_FIRST")
	begin := time.Now()
	got := simulation.RunMany(first, int(n), func(seed uint64) (map[string]int, string) { return run(seed, faultless, nil) })
	if got.Broken != "" {
		t.Fatal(report(got))
	}
	took := time.Since(begin)
	t.Logf("%d histories from seed %d on in %.1fs: %.0f/s, %.0f decisions/s", got.Done, first, took.Seconds(),
		float64(got.Done)/took.Seconds(), float64(got.Seen["decisions"])/took.Seconds())
	for _, what := range slices.Sorted(maps.Keys(got.Seen)) {
		t.Logf("%10d %s", got.Seen[what], what)
	}
	for _, what := range wanted {
		if got.Seen[what] == 0 && n >= histories {
			t.Errorf("the histories never saw: %s", what)
		}
	}
}

// wanted is what histories must contain, so that a simulation which no longer gets somewhere does not pass for a good one.
var wanted = []string{
	"applies of the leader statefulset", "conflicts", "conflicts of applies", "deletions", "edits", "failed syncs", "groups created",
	"groups that have used up their restarts", "kills of the controller", "leaders deleted", "pods created", "pods deleted by others", "pods replaced by a rolling update",
	"pods that failed", "pods that vanished", "pods that were lost", "requested restarts that ended", "requests in trouble", "restarts of containers",
	"restarts on request", "restarts that count", "revisions created", "revisions deleted by others", "rollbacks", "rolling updates", "statefulsets deleted by others", "steps of rolling updates",
	"groups placed in a domain", "leader statefulsets edited by others", "outages", "pods lost with their node", "pods refused", "pods that waited for their gang",
	"revisions lost in use", "scalings", "times without a controller", "workers lost without a controller",
	"syncs put off because a cache lagged", "at rest: available", "at rest: broken", "at rest: gone", "at rest: paused",
}

// report describes a history with a broken rule. It has to happen again to be described.
func report(r simulation.Result) string {
	var trace []string
	_, again := run(r.Seed, faultless, &trace)
	steps := trace[max(0, len(trace)-shown):]
	return fmt.Sprintf("history %d broke %s\nand again %s\nlast %d of %d steps:\n%s\nto see it all: SIMULATION_SEED=%d go test -run TestHistories -v",
		r.Seed, r.Broken, again, len(steps), len(trace), strings.Join(steps, "\n"), r.Seed)
}
