// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

// placements is a scenario with a start in two modes.
func placements(figure string, without, exclusive float64) *Scenario {
	s := &Scenario{Name: "place", Runs: 1, Sizes: map[string]int{"jobs": 8}}
	for mode, value := range map[string]float64{"without": without, "exclusive": exclusive} {
		s.Phase(mode+": start").Add("wall", UnitSeconds, 1)
		s.Phase(mode+": start").Add(figure, UnitCount, value)
	}
	s.summarize()
	return s
}

func TestRateOfPlacementHasALimitBelow(t *testing.T) {
	const figure = "place: pods per second of a start / without placement"
	for name, tc := range map[string]struct {
		exclusive float64
		want      string
	}{
		"as fast":            {100, figure + " 1 >= 0.900 ok"},
		"just fast enough":   {90, figure + " 0.900 >= 0.900 ok"},
		"too slow":           {89, figure + " 0.890 >= 0.900 missed"},
		"faster than before": {150, figure + " 1.50 >= 0.900 ok"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(strings.Fields(VerdictTable(Verdicts([]*Scenario{placements("pods per second", 100, tc.exclusive)}))), " ")
			if !strings.Contains(text, tc.want) {
				t.Errorf("the table has no %q: %s", tc.want, text)
			}
			if want := "place: pods per second of a restart / without placement - >= 0.900 not measured"; !strings.Contains(text, want) {
				t.Errorf("the table has no %q: %s", want, text)
			}
		})
	}
}

func TestCountsOfPlacement(t *testing.T) {
	for name, tc := range map[string]struct {
		figure             string
		without, exclusive float64
		want, wantNone     string
	}{
		"as many Jobs as the set has": {
			figure: "client/jobset-controller/create jobs", without: 8, exclusive: 8, wantNone: "place: exclusive: Jobs created by a start",
		},
		"a Job is created twice": {
			figure: "client/jobset-controller/create jobs", without: 8, exclusive: 9,
			want: "place: exclusive: Jobs created by a start, for each Job: is 1.12, must be 1 to 1",
		},
		"Jobs are patched": {
			figure: "client/jobset-controller/patch jobs", exclusive: 8, want: "place: exclusive: Jobs patched by a start: is 8, must be 0 to 0",
		},
		"few bytes": {figure: "stored/jobset-etcd/jobset bytes", without: 1000, exclusive: 1499, wantNone: "place: bytes of the sets"},
		"many bytes": {
			figure: "stored/jobset-etcd/jobset bytes", without: 1000, exclusive: 2000,
			want: "place: bytes of the sets with domains / of those without: is 2, must be 1 to 1.50",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckCounts([]*Scenario{placements(tc.figure, tc.without, tc.exclusive)}) // most was not measured, or is missing
			if err == nil || tc.want != "" && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, must contain %q", err, tc.want)
			}
			if tc.wantNone != "" && strings.Contains(err.Error(), tc.wantNone) {
				t.Errorf("error %v, must not contain %q", err, tc.wantNone)
			}
		})
	}
}
