// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

// TestRequestsBesideUpstream has the start of four Jobs in two rounds.
func TestRequestsBesideUpstream(t *testing.T) {
	of := func(name string, figures map[string][]float64) *Scenario {
		s := &Scenario{Name: name, Runs: 2, Sizes: map[string]int{"jobs": 4}}
		for figure, values := range figures {
			for _, value := range values {
				s.Phase("start").Add(figure, UnitCalls, value)
			}
		}
		for range 2 {
			s.Phase("start").Add("wall", UnitSeconds, 1)
		}
		s.summarize()
		return s
	}
	scenarios := []*Scenario{
		of("floor", map[string][]float64{"calls/kube-apiserver/POST pods": {4, 4}}),
		of("big+upstream", map[string][]float64{
			"calls/kube-apiserver/POST pods": {4, 4}, "calls/kube-apiserver/POST jobsets": {1, 1}, "calls/kube-apiserver/PUT jobs/status": {12, 16},
			"calls/kube-apiserver/WEBHOOK mpod.kb.io": {4, 4}, "client/jobset-controller/create jobs": {4, 4},
			"sent/kube-controller-manager/GET": {1, 1}, "sent/kube-controller-manager/POST": {4, 4}, "sent/kube-controller-manager/PUT": {8, 8},
		}),
		of("big", map[string][]float64{
			"calls/kube-apiserver/POST pods": {4, 4}, "calls/jobset-apiserver/POST jobsets": {1, 1}, "calls/kube-apiserver/PUT jobs/status": {12, 12},
			"calls/kube-apiserver/PUT leases": {9, 9}, "calls/kube-apiserver/WATCH pods": {8, 8},
			"calls/kube-apiserver/GET nodes": {0, 0.1}, "client/jobset-controller/create jobs": {4, 4},
		}),
		of("big+compact", map[string][]float64{"calls/kube-apiserver/POST pods": {2, 2}}),
	}
	text := Requests(scenarios)
	got := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"REQUESTS bare upstream own own+compact",
		"big start, for each Job: POST pods 1 (1 - 1) 1 (1 - 1) 1 (1 - 1) 0.500 (0.500 - 0.500)",
		"big start, for each Job: PUT jobs/status 0 3.50 (3 - 4) 3 (3 - 3) 0",
		"big start, for each Job: POST jobsets 0 0.250 (0.250 - 0.250) 0.250 (0.250 - 0.250) 0",
		"big start, for each Job: WEBHOOK mpod.kb.io 0 1 (1 - 1) 0 0",
		"big start, for each Job: answered by kube-apiserver 1 (1 - 1) 4.75 (4.25 - 5.25)",
		"big start, for each Job: answered by jobset-apiserver 0 0 0.250 (0.250 - 0.250) 0",
		"big start, for each Job: by the controllers of sets: create jobs 0 1 (1 - 1) 1 (1 - 1) 0",
		"big start, for each Job: writes sent by kube-controller-manager 0 3 (3 - 3) 0 0",
		"big start, for each Job: reads sent by kube-controller-manager 0 0.250 (0.250 - 0.250) 0 0",
		"big start, for each Job: others 0 0 0.013",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
	for _, left := range []string{"GET nodes", "PUT leases", "WATCH pods"} {
		if strings.Contains(got, left) {
			t.Errorf("the table has %s:\n%s", left, text)
		}
	}
	if text := Requests([]*Scenario{scenarios[0], scenarios[2]}); text != "" {
		t.Errorf("a table without upstream:\n%s", text)
	}
}

func TestUnitsOfRequests(t *testing.T) {
	r := results{}
	for name, sizes := range map[string]map[string]int{
		"large": {"jobs": 2000}, "run+upstream": {"sets": 200, "jobs of each": 4}, "many": {"namespaces": 20, "sets of each": 100},
		"leaderworkersets": {"groups": 100, "groups at rest": 1000}, "place": {"jobs": 50, "pods of each": 9}, "write": {"requests of each kind": 300}, "list": nil,
	} {
		r[name] = &Scenario{Name: name, Sizes: sizes}
	}
	for _, tc := range []struct {
		scenario, phase, unit string
		n                     float64
	}{
		{"large", "resume", "Job", 2000}, {"run+upstream", completed, "Job", 800}, {"many", "create", "set", 2000}, {"many", AtRest, "", 1},
		{"many", ControllerRestarted, "", 1}, {"leaderworkersets", "groups: update", "group", 100}, {"leaderworkersets", "create groups at rest", "group", 1000},
		{"leaderworkersets", "groups: restart of one group", "", 1}, {"place", Placed, "pod", 450}, {"write", "create jobsets", "request of the client", 300},
		{"list", ListWhole, "", 1},
	} {
		if got := r.unitOf(tc.scenario, tc.phase); got.name != tc.unit || got.n.value != tc.n {
			t.Errorf("%s %s: for each of %v %q, want %v %q", tc.scenario, tc.phase, got.n.value, got.name, tc.n, tc.unit)
		}
	}
	for phase, want := range map[string][2]string{
		"groups: create": {"leaderworkersets", "statefulsets: create"}, "create groups at rest": {}, AtRest: {},
	} {
		if scenario, same := bareOf("leaderworkersets", phase); [2]string{scenario, same} != want {
			t.Errorf("%s: bare %q %q, want %q", phase, scenario, same, want)
		}
	}
}
