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
	own := of(5, 9, map[string]float64{"jobset-apiserver": 100, "jobset-controller": 50, "kube-apiserver": 900})
	upstream := of(10, 9, map[string]float64{"upstream-jobset": 60, "upstream-lws": 40, "kube-apiserver": 950})
	upstream["stored/etcd/jobset bytes"] = []float64{7, 7} // where the sets of jobset-apiserver are not stored
	scenarios := []*Scenario{
		repeated("floor", "start", jobs, of(4, 8, nil)), repeated("big", "start", jobs, own), repeated("big+endpoints", "start", jobs, of(4, 8, nil)),
		repeated("big+upstream", "start", jobs, upstream),
	}
	text := BesideUpstream(scenarios)
	got := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"FIGURE upstream own own / upstream own+endpoints / upstream",
		"big start: wall 10 5 0.500 (0.500 - 0.500) 0.400 (0.400 - 0.400)",
		"big start: cpu/total 9.50 9.50 1 (1 - 1)",
		"big start: peak/programs 60 150 2.50 (2.50 - 2.50) -",
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

// Upstream's cluster has no version of our programs.
func TestHostIsThatOfOurPrograms(t *testing.T) {
	upstreams := &Scenario{Name: "many+upstream", Host: Host{Program: "none"}}
	own := &Scenario{Name: "many", Host: Host{Program: "v1"}}
	for want, scenarios := range map[string][]*Scenario{"v1": {upstreams, own}, "none": {upstreams}} {
		if got := HostOf(scenarios).Program; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if table := Table(scenarios); !strings.Contains(strings.SplitN(table, "\n", 2)[0], "jobset-apiserver "+want) {
			t.Errorf("the table does not begin with the version %s:\n%s", want, table)
		}
	}
}

func TestMemoryBesideUpstream(t *testing.T) {
	measured := func(name string, peaks map[string]float64, before, after float64) *Scenario {
		s := &Scenario{Name: name}
		for range 2 {
			for _, process := range MainStore {
				s.Phase(BeforeSets).Add(MemoryOf(process), UnitMiB, before)
				s.Phase("create").Add("rss/"+process, UnitMiB, after)
			}
			for process, peak := range peaks {
				s.Phase("create").Add("peak/"+process, UnitMiB, peak)
			}
		}
		s.summarize()
		return s
	}
	programs := map[string]float64{"jobset-apiserver": 150, "jobset-controller": 60, "jobset-etcd": 40, "kube-apiserver": 900}
	own := measured("many", programs, 400, 450)
	upstreams := measured("many+upstream", map[string]float64{"upstream-jobset": 100, "upstream-lws": 70, "kube-apiserver": 990}, 500, 550)
	const figure = "many create: peak/programs, and growth of kube-apiserver and etcd"
	got := strings.Join(strings.Fields(BesideUpstream([]*Scenario{own, upstreams})), " ")
	if !strings.Contains(got, figure+" 200 350 1.75 (1.75 - 1.75)") {
		t.Errorf("upstream needs 100 MiB and lets each of two processes grow by 50:\n%s", got)
	}
	if want := "many create: peak/programs, and kube-apiserver and etcd 1200 1150 0.958 (0.958 - 0.958)"; !strings.Contains(got, want) {
		t.Errorf("the table has no %q:\n%s", want, got)
	}
	for _, v := range Verdicts([]*Scenario{own, upstreams}) {
		if strings.HasPrefix(v.Figure, "many+upstream") {
			t.Errorf("upstream has one of our targets: %s", v.Figure)
		}
		if v.Figure == figure+" / upstream" && v.Outcome != Missed {
			t.Errorf("verdict %+v, want missed", v)
		}
	}
	upstreams.Phases = upstreams.Phases[1:] // a run without the memory before
	if got := BesideUpstream([]*Scenario{own, upstreams}); strings.Contains(got, figure) {
		t.Errorf("a row whose parts are not known:\n%s", got)
	}
}

// TestRestartedControllersAreCompared has a row for each figure of the restart.
func TestRestartedControllersAreCompared(t *testing.T) {
	of := func(value float64) map[string][]float64 {
		return map[string][]float64{
			"wall": {value}, "cpu/total": {value}, "cpu/own": {value}, "cpu/kube-apiserver": {value}, "peak/jobset-controller": {value},
		}
	}
	text := BesideUpstream([]*Scenario{
		repeated("many", ControllerRestarted, nil, of(1)), repeated("many+upstream", ControllerRestarted, nil, of(2)),
	})
	got := strings.Join(strings.Fields(text), " ")
	for _, figure := range []string{"wall", "cpu/total", "cpu/own", "cpu/kube-apiserver", "peak/programs"} {
		if want := "many controller restarted: " + figure + " 2 1 0.500"; !strings.Contains(got, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
}

func TestListsAreComparedByTheWayOfReading(t *testing.T) {
	var scenarios []*Scenario
	for name, value := range map[string]float64{"list": 3, "list+upstream": 6} {
		s := &Scenario{Name: name}
		for _, phase := range []string{"store", "whole", "paged", "by label"} {
			s.Phase(phase).Add("received", UnitMillis, value)
			s.Phase(phase).Add("decoded", UnitMillis, value+3)
		}
		s.summarize()
		scenarios = append(scenarios, s)
	}
	got := strings.Join(strings.Fields(BesideUpstream(scenarios)), " ")
	for _, phase := range []string{"whole", "paged", "by label"} {
		for figure, row := range map[string]string{"received": "6 3 0.500", "decoded": "9 6 0.667"} {
			if want := "list " + phase + ": " + figure + " " + row; !strings.Contains(got, want) {
				t.Errorf("the table has no %q:\n%s", want, got)
			}
		}
	}
	if strings.Contains(got, "store") {
		t.Errorf("the creation is not compared:\n%s", got)
	}
}

// TestRowsBesideUpstream has two rounds of each figure: 4 and 5 of upstream, 2 and 5 of our programs, and half of upstream's of the variant a.
func TestRowsBesideUpstream(t *testing.T) {
	rows := []struct{ scenario, phase, figure string }{
		{"large", "start", "wall"}, {"large", "restart", "cpu/total"}, {"large", "delete", "wall"}, {"large", "start", MainStoreBytes},
		{"big", "start", MainStoreBytes}, {"run", "until completed", MainStoreBytes}, {"many", "create", MainStoreBytes},
		{"place", "exclusive: until all pods are scheduled", "wall"}, {"place", "exclusive: until all pods are scheduled", "cpu/kube-scheduler"},
		{"leaderworkersets", "groups: scale up", "wall"}, {"leaderworkersets", "groups: scale down", "cpu/total"},
		{"leaderworkersets", "create groups at rest", "wall"}, {"leaderworkersets", "at rest", "cpu/own"},
	}
	byName := map[string]*Scenario{}
	var scenarios []*Scenario
	for _, row := range rows {
		for name, values := range map[string][]float64{row.scenario: {2, 5}, row.scenario + "+upstream": {4, 5}, row.scenario + "+a": {2, 2.5}} {
			if byName[name] == nil {
				byName[name] = &Scenario{Name: name}
				scenarios = append(scenarios, byName[name])
			}
			for _, value := range values {
				byName[name].Phase(row.phase).Add(row.figure, UnitSeconds, value)
			}
		}
	}
	for _, s := range scenarios {
		s.summarize()
	}
	got := strings.Join(strings.Fields(BesideUpstream(scenarios)), " ")
	outcomes := map[string]Outcome{}
	for _, v := range Verdicts(scenarios) {
		outcomes[v.Figure] = v.Outcome
	}
	for _, row := range rows {
		figure := row.scenario + " " + row.phase + ": " + row.figure
		if want := figure + " 4.50 3.50 0.750 (0.500 - 1) 0.500 (0.500 - 0.500)"; !strings.Contains(got, want) {
			t.Errorf("the table has no %q:\n%s", want, got)
		}
		if outcome := outcomes[figure+" / upstream"]; outcome != ToCompare {
			t.Errorf("%s: verdict %q, want %q", figure, outcome, ToCompare)
		}
	}
}
