// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

func TestSetsBesideUpstream(t *testing.T) {
	jobs := map[string]int{"jobs": 4}
	of := func(wall, cpu float64, peaks map[string]float64) map[string][]float64 {
		figures := map[string][]float64{"wall": {wall, wall}, "cpu/total": {cpu, cpu + 1}}
		for process, peak := range peaks {
			figures["peak/"+process] = []float64{peak, peak}
		}
		return figures
	}
	ours := of(5, 9, map[string]float64{"jobset-apiserver": 100, "jobset-controller": 50, "kube-apiserver": 900})
	theirs := of(10, 9, map[string]float64{"upstream-jobset": 60, "upstream-lws": 40, "kube-apiserver": 950})
	theirs["stored/etcd/jobset bytes"] = []float64{7, 7} // where ours are not stored
	scenarios := []*Scenario{
		repeated("floor", "start", jobs, of(4, 8, nil)), repeated("big", "start", jobs, ours), repeated("big+endpoints", "start", jobs, of(4, 8, nil)),
		repeated("big+upstream", "start", jobs, theirs),
	}
	text := BesideUpstream(scenarios)
	got := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"FIGURE upstream ours ours / upstream ours+endpoints / upstream",
		"big start: wall 10 5 0.500 (0.500 - 0.500) 0.400 (0.400 - 0.400)",
		"big start: cpu/total 9.50 9.50 1 (1 - 1)",
		"big start: peak/programs 100 150 1.50 (1.50 - 1.50) -",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(got, "restart") || strings.Contains(Comparison(scenarios), "upstream") {
		t.Errorf("figures that were not measured, or a column of upstream beside bare Jobs:\n%s\n%s", text, Comparison(scenarios))
	}
	if text := BesideUpstream(scenarios[:3]); text != "" {
		t.Errorf("a table without upstream:\n%s", text)
	}
	outcomes := map[string]Outcome{}
	for _, v := range Verdicts(scenarios) {
		outcomes[v.Figure] = v.Outcome
	}
	for figure, want := range map[string]Outcome{
		"big start: wall / upstream": Kept, "big start: cpu/total / upstream": Missed, "big start: peak/programs / upstream": ToCompare,
		"run until completed: wall / upstream": "", "bytes of JobSets in the etcd of kube-apiserver": NotMeasured,
	} {
		if got := outcomes[figure]; got != want {
			t.Errorf("%s: got %q, want %q", figure, got, want)
		}
	}
}
