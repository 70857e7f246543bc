// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedianAndPercentiles(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, tc := range map[string]struct {
		values           []float64
		median, p50, p99 float64
		p100             float64
	}{
		"nothing is zero":                          {nil, 0, 0, 0, 0},
		"one value is all of them":                 {[]float64{7}, 7, 7, 7, 7},
		"of three the middle one, in any order":    {[]float64{9, 1, 5}, 5, 5, 9, 9},
		"of an even number the mean of the middle": {[]float64{4, 1, 2, 3}, 2.5, 2, 4, 4},
		"percentiles are values that occurred":     {hundred, 50.5, 50, 99, 100},
	} {
		t.Run(name, func(t *testing.T) {
			got := []float64{Median(tc.values), Percentile(tc.values, 50), Percentile(tc.values, 99), Percentile(tc.values, 100)}
			if d := cmp.Diff([]float64{tc.median, tc.p50, tc.p99, tc.p100}, got); d != "" {
				t.Errorf("median, p50, p99, p100 (-want +got):\n%s", d)
			}
		})
	}
}

func TestSavedScenarioIsLoadedWithItsMedians(t *testing.T) {
	dir := t.TempDir()
	late := &Scenario{Name: "a-later", Runs: 3, Begun: time.Unix(200, 0).UTC()}
	for _, wall := range []float64{3, 1, 2} {
		late.Phase("start").Add("wall", UnitSeconds, wall)
	}
	late.Phase("start").Add("calls/kube-apiserver/POST jobs", UnitCalls, 6) // in one run of three
	early := &Scenario{Name: "b-earlier", Runs: 1, Begun: time.Unix(100, 0).UTC()}
	for _, s := range []*Scenario{late, early} {
		if err := s.Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Scenario{
		{Name: "b-earlier", Runs: 1, Begun: time.Unix(100, 0).UTC()},
		{Name: "a-later", Runs: 3, Begun: time.Unix(200, 0).UTC(), Phases: []*Phase{{Name: "start", Figures: []*Figure{
			{Name: "wall", Unit: "s", Values: []float64{3, 1, 2}, Median: 2, Min: 1, Max: 3},
			{Name: "calls/kube-apiserver/POST jobs", Unit: "calls", Values: []float64{6, 0, 0}, Median: 0, Min: 0, Max: 6},
		}}}},
	}
	if d := cmp.Diff(want, loaded); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "--output") {
		t.Errorf("loading from an empty directory: error %v, must name the flag", err)
	}
}

func TestCountsThatAreWrongOrMissingAreErrors(t *testing.T) {
	life := func(jobs, events, writes float64) *Scenario {
		return measured("run", "until completed", map[string]int{"sets": 10, "jobs of each": 4}, map[string]float64{
			"wall": 1, "client/jobset-controller/create jobs": jobs, "client/jobset-controller/create services": 10,
			"client/jobset-controller/create events": events, "writes to each set": writes,
		})
	}
	for name, tc := range map[string]struct {
		run            *Scenario
		want, wantNone []string
	}{
		"a set that asks for what it needs": {
			life(40, 10, 3), nil, []string{"Jobs created by a set that runs", "writes to a set", "events of a set", "Jobs patched by a set"},
		},
		"a Job too many": {life(41, 10, 3), []string{"Jobs created by a set that runs, for each Job: is 1.02, must be 1 to 1"}, nil},
		"two events":     {life(40, 20, 3), []string{"events of a set that runs: is 2"}, []string{"writes to a set"}},
		"many writes":    {life(40, 10, 100), []string{"writes to a set that runs: is 100"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckCounts([]*Scenario{tc.run})
			if err == nil {
				t.Fatal("no error, although most was not measured")
			}
			for _, text := range append(tc.want, "JobSets in their own etcd after a start: not measured") {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error has no %q:\n%v", text, err)
				}
			}
			for _, text := range tc.wantNone {
				if strings.Contains(err.Error(), text) {
					t.Errorf("error has %q:\n%v", text, err)
				}
			}
		})
	}
}

// TestTriesFollowTheTime has a set that is refused be looked at in a time in which it is backed off to 12 seconds.
func TestTriesFollowTheTime(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds, tries float64
		ok             bool
	}{
		"three in the seconds of a smoke test": {8, 3, true},
		"four":                                 {8, 4, false},
		"as many as a slow machine lets there": {65, 8, true},
		"more":                                 {65, 9, false},
	} {
		t.Run(name, func(t *testing.T) {
			const call = "client/jobset-controller/create statefulsets"
			err := CheckCounts([]*Scenario{measured("refusals", QuotaUsedUp, nil, map[string]float64{"wall": 1, Watched: tc.seconds, Syncs: tc.tries, call: tc.tries})})
			if err == nil {
				t.Fatal("no error, although most was not measured")
			}
			for _, count := range []string{Syncs, "create statefulsets"} {
				if wrong := strings.Contains(err.Error(), QuotaUsedUp+": "+count+": is "); wrong == tc.ok {
					t.Errorf("%s: %v", count, err)
				}
			}
		})
	}
	if err := CheckCounts([]*Scenario{measured("refusals", QuotaUsedUp, nil, map[string]float64{"wall": 1, Syncs: 1})}); !strings.Contains(err.Error(), QuotaUsedUp+": "+Syncs+": not measured") {
		t.Errorf("tries in an unknown time: %v, want that they were not measured", err)
	}
}

func TestPlotIsXMLWithOneBarPerPhase(t *testing.T) {
	s := &Scenario{Name: "big <1>", Runs: 2, Sizes: map[string]int{"jobs": 4}}
	for _, phase := range []string{"start", "restart & more"} {
		for _, wall := range []float64{1, 3} {
			s.Phase(phase).Add("wall", UnitSeconds, wall)
			s.Phase(phase).Add("cpu/etcd", UnitSeconds, wall)
			s.Phase(phase).Add("cpu/jobset-controller", UnitSeconds, wall)
		}
	}
	s.summarize()
	elements, text := map[string]int{}, ""
	for decoder := xml.NewDecoder(bytes.NewReader(s.Plot())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
		case xml.CharData:
			text += string(token) + "\n"
		}
	}
	// The background, two bars of wall time, four parts of CPU time, and the legend of eight; a line for each spread.
	if d := cmp.Diff(map[string]int{"rect": 1 + 2 + 4 + 8, "line": 2}, map[string]int{"rect": elements["rect"], "line": elements["line"]}); d != "" {
		t.Errorf("elements (-want +got):\n%s", d)
	}
	for _, label := range []string{"big <1> (jobs 4; median of 2)", "restart & more", "jobset-controller"} {
		if !strings.Contains(text, label) {
			t.Errorf("the plot does not say %q", label)
		}
	}
}

func TestTableHasOneRowPerProcess(t *testing.T) {
	s := measured("big", "start", map[string]int{"jobs": 400}, map[string]float64{
		"wall": 1.234, "cpu/etcd": 0.5, "peak/etcd": 100, "rss/etcd": 90.25, "client/jobset-controller/create jobs": 400,
	})
	got := strings.Join(strings.Fields(Table([]*Scenario{s})), " ")
	for _, want := range []string{"== big (jobs 400; 1 runs)", "wall 1.23 s", "etcd 0.500 100 90.2", "calls by jobset-controller: 400 create jobs"} {
		if !strings.Contains(got, want) {
			t.Errorf("the table has no %q: %s", want, got)
		}
	}
}
