// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

func TestComparisonHasOneColumnForEachVariant(t *testing.T) {
	jobs := map[string]int{"jobs": 4}
	calls := func(endpoints float64) map[string][]float64 {
		return map[string][]float64{
			"wall": {1, 2}, "cpu/total": {2, 2}, "calls/kube-apiserver/PUT endpoints": {endpoints, endpoints}, "calls/kube-apiserver/POST pods": {4, 4},
			"calls/kube-apiserver/GET pods": {100, 100},
		}
	}
	set := calls(8)
	set["cpu/total"], set["cpu/own"], set[ChangesOfSets] = []float64{3, 4}, []float64{0.5, 0.7}, []float64{3, 3}
	text := Comparison([]*Scenario{
		repeated("floor", "start", jobs, calls(0)), repeated("big", "start", jobs, set), repeated("big+compact", "start", jobs, calls(2)),
	})
	got := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"FIGURE floor labeled-jobs set set+compact",
		"start: cpu/total 2 s (2 - 2) - 1.75 (1.50 - 2) 1 (1 - 1)",
		"start: cpu/own - - 0.600 (0.500 - 0.700) -",
		"start: writes to kube-apiserver for each Job 1 - 3 1.50",
		"start: ... of endpoints 0 - 2 0.500",
		"start: changes of each JobSet - - 3 (3 - 3) -",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(got, "restart") || strings.Contains(got, "cpu/etcd") {
		t.Errorf("the table has figures that were not measured:\n%s", text)
	}
	if text := Comparison([]*Scenario{repeated("place", "start", jobs, calls(0))}); text != "" {
		t.Errorf("a comparison without bare Jobs: %s", text)
	}
}
