// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCountsOfScenariosThatAreRunByThemselves(t *testing.T) {
	manySets := func(writes float64) *Scenario {
		s := &Scenario{Name: "many+endpoints", Runs: 1}
		for _, phase := range restPhases {
			s.Phase(phase).Add("wall", UnitSeconds, 1)
			s.Phase(phase).Add(ControllerWrites, UnitCount, writes)
		}
		s.summarize()
		return s
	}
	oneSet := func(created float64) *Scenario {
		s := &Scenario{Name: "growth", Runs: 1}
		s.Phase(GrowthPhase(10, "start")).Add("wall", UnitSeconds, 1)
		s.Phase(GrowthPhase(10, "start")).Add("client/jobset-controller/create jobs", UnitCalls, created)
		s.summarize()
		return s
	}
	for name, tc := range map[string]struct {
		scenarios []*Scenario
		want      string
	}{
		"no write, and each Job created once": {[]*Scenario{manySets(0), oneSet(10)}, ""},
		"a write at rest":                     {[]*Scenario{manySets(1)}, "many+endpoints: at rest: writes of jobset-controller: is 1, must be 0 to 0"},
		"a Job created twice":                 {[]*Scenario{oneSet(11)}, "growth 10: start: Jobs created, for each Job: is 1.10, must be 1 to 1"},
		"a phase is missing":                  {[]*Scenario{{Name: "many"}}, "many: at rest after completion: writes of jobset-controller: not measured"},
		"beside another scenario":             {[]*Scenario{manySets(0), {Name: "big"}}, "JobSets in their own etcd after a start: not measured"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckCounts(tc.scenarios)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, must contain %q", err, tc.want)
			}
		})
	}
}

func TestGrowthDuringChurnLeavesOutTheFirstPart(t *testing.T) {
	s := &Scenario{Name: "churn", Runs: 1}
	for part, live := range []float64{50, 90, 100, 110, 150, 150, 150, 100, 110, 114} {
		for _, program := range ChurnedPrograms {
			s.Phase(ChurnPart(part)).Add(LiveHeapOf(program), UnitMiB, live)
			s.Phase(ChurnPart(part)).Add(MemoryOf(program), UnitMiB, 2*live)
		}
	}
	s.summarize()
	got := map[string]Outcome{}
	for _, v := range Verdicts([]*Scenario{s}) {
		if v.Value == 1.08 {
			got[v.Figure] = v.Outcome
		}
	}
	if d := cmp.Diff(map[string]Outcome{
		"churn: live heap of jobset-controller at the end / near the beginning": Kept,
		"churn: live heap of jobset-apiserver at the end / near the beginning":  Kept,
		"churn: memory of jobset-controller at the end / near the beginning":    ToCompare,
		"churn: memory of jobset-apiserver at the end / near the beginning":     ToCompare,
	}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
