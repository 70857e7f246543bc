// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

// grown has the start of sets of three sizes, and a phase of one size only.
func grown(name string) *Scenario {
	s := &Scenario{Name: name, Runs: 1}
	for jobs, each := range map[int]float64{10_000: 30, 400: 20, 2000: 20} {
		s.Phase(GrowthPhase(jobs, "start")).Add("wall", UnitSeconds, each*float64(jobs)/1000)
		for _, figure := range growthFigures {
			s.Phase(GrowthPhase(jobs, "start")).Add(figure, UnitMillis, each)
		}
	}
	s.Phase(GrowthPhase(100_000, "create suspended")).Add("wall for each Job", UnitMillis, 4)
	s.summarize()
	return s
}

func TestGrowthIsComparedWithTheSmallestSet(t *testing.T) {
	text := strings.Join(strings.Fields(VerdictTable(Verdicts([]*Scenario{grown("growth+endpoints")}))), " ")
	for _, want := range []string{
		"growth+endpoints start: wall for each Job, of 2000 / of 400 (1 is linear) 1 to compare",
		"growth+endpoints start: CPU of all programs for each Job, of 10000 / of 400 (1 is linear) 1.50 to compare",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q: %s", want, text)
		}
	}
	for _, none := range []string{"create suspended", "of 400 / of 400"} {
		if strings.Contains(text, none) {
			t.Errorf("the table has %q: %s", none, text)
		}
	}
	if text := VerdictTable(Verdicts(nil)); strings.Contains(text, "growth") {
		t.Errorf("the table has growth although it was not measured: %s", text)
	}
}
