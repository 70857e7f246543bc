// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// gcPercent is how much garbage is left until it is collected. A history leaves little else behind, so that collecting it seldom is cheap.
const gcPercent = 800

// lastSteps is the number of steps that are printed of a history with a broken rule.
const lastSteps = 60

// Histories are the histories of one kind, whose controller may have the defects that M describes.
type Histories[M any] struct {
	// Run lets one history happen. It returns what was seen in it, and the rule that was broken, if any. The trace gets
	// its steps unless it is nil.
	Run func(seed uint64, m M, trace *[]string) (seen map[string]int, broken string)
	// Faultless is the real controller.
	Faultless M
	// Number is how many are run unless an environment variable says otherwise. Long is how many the long tier runs, from a random seed on; 0
	// means that it runs the same as the gate. They are not many: the long tier says whether a tree is good, and hack/soak.sh searches.
	Number, Long int
	// Wanted is what they must contain, so that a simulation which no longer gets somewhere does not pass for a good one.
	Wanted []string
	// Decisions is the name under which Seen counts decisions; empty for syncs.
	Decisions string
	// One and Many are environment variables: the seed of the only history to run, and how many to run. They are
	// SIMULATION_SEED and SIMULATION_HISTORIES if empty.
	One, Many string
}

// Test runs random histories. SIMULATION_SEED=N shows the steps of one, and SIMULATION_FIRST=N makes them begin elsewhere.
func (h Histories[M]) Test(t *testing.T) {
	h.One, h.Many, h.Decisions = cmp.Or(h.One, "SIMULATION_SEED"), cmp.Or(h.Many, "SIMULATION_HISTORIES"), cmp.Or(h.Decisions, "syncs")
	if seed, given := Number(t, h.One); given {
		var trace []string
		_, broken := h.Run(seed, h.Faultless, &trace)
		t.Logf("history %d:\n%s", seed, strings.Join(trace, "\n"))
		if broken != "" {
			t.Fatal(broken)
		}
		return
	}
	n := uint64(h.Number)
	// The same in every run of the gate, so that a failure comes from a change of the code.
	var first uint64
	if tier.Long() && h.Long > 0 {
		n, first = uint64(h.Long), uint64(rand.Uint32())
	}
	if given, ok := Number(t, h.Many); ok {
		n = given
	}
	if given, ok := Number(t, "SIMULATION_FIRST"); ok {
		first = given
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	begin := time.Now()
	got := RunMany(first, int(n), func(seed uint64) (map[string]int, string) { return h.Run(seed, h.Faultless, nil) })
	if got.Broken != "" {
		t.Fatal(h.report(t.Name(), got))
	}
	took := time.Since(begin)
	t.Logf("%d histories from seed %d on in %.1fs: %.0f/s, %.0f %s/s", got.Done, first, took.Seconds(),
		float64(got.Done)/took.Seconds(), float64(got.Seen[h.Decisions])/took.Seconds(), h.Decisions)
	for _, what := range slices.Sorted(maps.Keys(got.Seen)) {
		t.Logf("%10d %s", got.Seen[what], what)
	}
	if n >= uint64(h.Number) && first == 0 { // other seeds may miss what is rare
		got.expect(t, h.Wanted)
	}
}

// expect fails the test unless the histories have seen all of it.
func (r Result) expect(t *testing.T, wanted []string) {
	t.Helper()
	for _, what := range wanted {
		if r.Seen[what] == 0 {
			t.Errorf("the histories never saw: %s", what)
		}
	}
}

// report describes a history with a broken rule. It has to happen again to be described.
func (h Histories[M]) report(test string, r Result) string {
	var trace []string
	_, again := h.Run(r.Seed, h.Faultless, &trace)
	steps := trace[max(0, len(trace)-lastSteps):]
	return fmt.Sprintf("history %d broke %s\nand again %s\nlast %d of %d steps:\n%s\nto see it all: %s=%d go test -run %s -v",
		r.Seed, r.Broken, again, len(steps), len(trace), strings.Join(steps, "\n"), h.One, r.Seed, test)
}

// seldom is how many histories without a defect are worth a note of the seed that shows it.
const seldom = 200

// Defect is one that histories must show.
type Defect[M any] struct {
	// Mutant is the controller with the defect.
	Mutant M
	// Rules are those one of which it breaks.
	Rules []string
	// First is the seed of a history that shows it, if it shows seldom. It is looked for from there on: a change of the simulation or of the
	// controller moves it to another history.
	First uint64
}

// ShowDefects makes sure that histories can fail, and by which rule: each defect breaks one of its rules in one of the first histories.
// SIMULATION_COUNT=N counts instead in how many of N histories a defect shows.
func (h Histories[M]) ShowDefects(t *testing.T, first int, defects map[string]Defect[M]) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	for name, defect := range defects {
		t.Run(name, func(t *testing.T) {
			if n, given := Number(t, "SIMULATION_COUNT"); given {
				h.countShown(t, int(n), defect)
				return
			}
			var others sync.Map
			got := RunMany(defect.First, first, func(seed uint64) (map[string]int, string) {
				_, broken := h.Run(seed, defect.Mutant, nil)
				if defect.shows(broken) {
					return nil, broken
				}
				others.Store(broken, true)
				return nil, ""
			})
			if got.Broken != "" {
				t.Logf("history %d: %s", got.Seed, got.Broken)
				if tried := got.Seed - defect.First; tried >= seldom {
					t.Logf("it took %d histories: with First: %d the test finds the defect at once", tried, got.Seed)
				}
				return
			}
			all := slices.Collect(func(yield func(string) bool) {
				others.Range(func(broken, _ any) bool { return yield(broken.(string)) })
			})
			t.Errorf("none of the rules %q was broken; other results: %.300q", defect.Rules, all[:min(len(all), 5)])
		})
	}
}

// shows returns whether a broken rule is one that the defect breaks.
func (d Defect[M]) shows(broken string) bool {
	return slices.ContainsFunc(d.Rules, func(rule string) bool { return strings.Contains(broken, strconv.Quote(rule)) })
}

func (h Histories[M]) countShown(t *testing.T, n int, defect Defect[M]) {
	t.Helper()
	got := RunMany(defect.First, n, func(seed uint64) (map[string]int, string) {
		_, broken := h.Run(seed, defect.Mutant, nil)
		if defect.shows(broken) {
			return map[string]int{"shown": 1}, ""
		}
		return nil, ""
	})
	t.Logf("%d of %d histories show it", got.Seen["shown"], got.Done)
}

// Deciding returns a decision with a defect: it is made on something else than what is, or something else than what is
// decided is done. Either may be nil. What the decision is made on is a copy.
func Deciding[O, P any](decide func(O) P, copied func(O) *O, misread func(*O), does func(O, *P)) func(O) P {
	return func(o O) P {
		wrong := &o
		if misread != nil {
			wrong = copied(o)
			misread(wrong)
		}
		p := decide(*wrong)
		if does != nil {
			does(o, &p)
		}
		return p
	}
}
