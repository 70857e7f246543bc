// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

func TestCountsOfRestartInPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		phase, figure string
		value         float64
		want          string
	}{
		"all as it must be":          {want: ""},
		"pods that the agents leave": {"restart in place", "calls/kube-apiserver/APPLY pods", 99, "in-place: attempts written by a restart, for each pod: is 0.99"},
		"a write for each pod":       {"restart in place", "client/jobset-controller/update jobsets/status", 100, "in-place: writes of the status by a restart: is 100"},
		"Jobs that are deleted":      {"restart in place", "client/jobset-controller/delete jobs", 5, "in-place: delete jobs by a restart: is 5"},
		"a Job that is not created":  {"recreation", "client/jobset-controller/create jobs", 4, "in-place: Jobs created by a recreation, for each Job: is 0.8"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Scenario{Name: "in-place", Sizes: map[string]int{"jobs": 5, "pods of each": 20}, Runs: 1}
			figures := map[[2]string]float64{
				{"restart in place", "wall"}: 1, {"restart in place", "calls/kube-apiserver/APPLY pods"}: 100, {"restart in place", "writes for each pod"}: 2.02,
				{"restart in place", "client/jobset-controller/update jobsets/status"}: 2,
				{"recreation", "wall"}: 20, {"recreation", "client/jobset-controller/create jobs"}: 5,
			}
			if tc.phase != "" {
				figures[[2]string{tc.phase, tc.figure}] = tc.value
			}
			for at, value := range figures {
				s.Phase(at[0]).Add(at[1], UnitCount, value)
			}
			s.summarize()
			err := CheckCounts([]*Scenario{s})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, must contain %q", err, tc.want)
			}
		})
	}
}
