// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// measured is a scenario with one phase, each figure measured once.
func measured(scenario, phase string, sizes map[string]int, figures map[string]float64) *Scenario {
	rounds := map[string][]float64{}
	for name, value := range figures {
		rounds[name] = []float64{value}
	}
	return repeated(scenario, phase, sizes, rounds)
}

// repeated is a scenario with one phase, and the value of each figure in each round.
func repeated(scenario, phase string, sizes map[string]int, figures map[string][]float64) *Scenario {
	s := &Scenario{Name: scenario, Sizes: sizes, Runs: 1}
	for name, values := range figures {
		s.Runs = max(s.Runs, len(values))
		for _, value := range values {
			s.Phase(phase).Add(name, unitOf(name), value)
		}
	}
	s.summarize()
	return s
}

func unitOf(figure string) string {
	switch {
	case strings.HasPrefix(figure, "client/"), strings.HasPrefix(figure, "calls/"):
		return UnitCalls
	case strings.HasPrefix(figure, "stored/"):
		return UnitBytes
	case strings.HasPrefix(figure, "writes"), figure == ChangesOfSets:
		return UnitCount
	}
	return UnitSeconds
}

func TestVerdictsAreMediansOfRatiosOfRounds(t *testing.T) {
	jobs := map[string]int{"jobs": 400}
	// The machine is half as fast in the second round: the ratio of the medians would be 12/10, or 1.2.
	scenarios := []*Scenario{
		repeated("floor", "start", jobs, map[string][]float64{"wall": {8, 16, 10}, "cpu/total": {20, 40, 24}, "stored/etcd/jobset bytes": {0, 0, 0}}),
		repeated("labeled-jobs", "start", jobs, map[string][]float64{"wall": {8, 16, 10}, "cpu/total": {24, 50, 28}}),
		repeated("big", "start", jobs, map[string][]float64{"wall": {12, 23, 11}, "cpu/total": {30, 61, 36}, "stored/etcd/jobset bytes": {5, 0, 0}}),
		repeated("big+endpoints", "start", jobs, map[string][]float64{"wall": {8, 17, 10}, "cpu/total": {30, 60, 37}}),
		repeated("big+endpoints-compact", "start", jobs, map[string][]float64{"wall": {10, 16, 11}, "cpu/total": {24, 52, 28}}),
		measured("run+endpoints", "until completed", map[string]int{"sets": 200, "jobs of each": 4}, map[string]float64{"cpu/total": 80}),
		measured("run", "until completed", map[string]int{"sets": 200, "jobs of each": 4}, map[string]float64{"writes to each set": 4}),
	}
	type outcome struct {
		Value, Low, High float64
		Rounds           int
		Outcome          Outcome
	}
	want := map[string]outcome{
		"big start: CPU / floor start":                     {1.5, 1.5, 1.525, 3, ToCompare},
		"big start: wall / floor start":                    {1.4375, 1.1, 1.5, 3, ToCompare},
		"big+endpoints start: CPU / floor start":           {1.5, 1.5, 37. / 24, 3, Missed},
		"big+endpoints start: wall / floor start":          {1, 1, 1.0625, 3, Kept},
		"big+endpoints-compact start: CPU / floor start":   {1.2, 28. / 24, 1.3, 3, Undecided},
		"run+endpoints: CPU per Job / floor start per Job": {2, 2, 2, 1, Undecided},
		"run: writes to a JobSet over its life":            {4, 4, 4, 1, Kept},
		"bytes of JobSets in the etcd of kube-apiserver":   {5, 5, 5, 0, Missed},
	}
	verdicts := Verdicts(scenarios)
	got := map[string]outcome{}
	for _, v := range verdicts {
		if _, wanted := want[v.Figure]; wanted {
			got[v.Figure] = outcome{v.Value, v.Low, v.High, v.Rounds, v.Outcome}
		}
		if !v.Known && (v.Outcome != NotMeasured || v.Value != 0) {
			t.Errorf("%s is not known, but is %v and %s", v.Figure, v.Value, v.Outcome)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	text := strings.Join(strings.Fields(VerdictTable(verdicts)), " ")
	for _, want := range []string{
		"big+endpoints start: CPU / floor start 1.50 1.50 - 1.54 (3) 1.35 missed", "big+endpoints restart: CPU / floor restart - 1.35 not measured",
		"big start: CPU / labeled-jobs start 1.25 1.22 - 1.29 (3) to compare", "big+endpoints-compact start: CPU / floor start 1.20 1.17 - 1.30 (3) 1.20 undecided",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q: %s", want, text)
		}
	}
}

func TestVerdictNeedsMarginLargerThanSpread(t *testing.T) {
	times := func(rounds ...float64) quantity {
		return quantity{value: Median(rounds), rounds: rounds, timed: true, known: true}
	}
	for name, tc := range map[string]struct {
		limit   float64
		atLeast bool
		is      quantity
		want    Outcome
	}{
		"below by more than the spread":                {1.35, false, times(1.1, 1.2, 1.15), Kept},
		"above by more than the spread":                {1.35, false, times(1.6, 1.5, 1.55), Missed},
		"below by less than the spread":                {1.35, false, times(1.1, 1.3, 1.28), Undecided},
		"above by less than the spread, in each round": {1.35, false, times(1.4, 1.6, 1.5), Undecided},
		"a time of one round":                          {1.35, false, times(1), Undecided},
		"one of five rounds was disturbed":             {1.35, false, times(1.1, 1.12, 1.11, 1.1, 3), Kept},
		"rounds that do not belong together":           {1.35, false, quantity{value: 1, timed: true, known: true}, Undecided},
		"a number of one round":                        {4, false, quantity{value: 4, rounds: []float64{4}, known: true}, Kept},
		"a number that varies around the limit":        {4, false, quantity{value: 4, rounds: []float64{3, 4, 5}, known: true}, Undecided},
		"at least: above by more than the spread":      {0.9, true, times(1, 1.02, 1.01), Kept},
		"at least: below by more than the spread":      {0.9, true, times(0.6, 0.62, 0.61), Missed},
		"at least: above by less than the spread":      {0.9, true, times(0.95, 1.1, 1), Undecided},
		"without a limit":                              {noLimit, false, times(0.95, 1.1, 1), ToCompare},
		"not known, and not undecided":                 {1, false, quantity{timed: true}, NotMeasured},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newVerdict("figure", "", tc.limit, tc.atLeast, tc.is); got.Outcome != tc.want {
				t.Errorf("%s, want %s (%+v)", got.Outcome, tc.want, got)
			}
		})
	}
}
