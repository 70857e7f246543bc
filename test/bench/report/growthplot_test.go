// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlotOfGrowthHasOneLinePerPart(t *testing.T) {
	s := grown("growth")
	for _, jobs := range []int{400, 2000} {
		s.Phase(GrowthPhase(jobs, "restart & more")).Add("wall for each Job", UnitMillis, 0)
	}
	s.summarize()
	elements, text, ends := map[string]int{}, "", []string{}
	for decoder := xml.NewDecoder(bytes.NewReader(s.PlotGrowth())); ; {
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
			for _, a := range token.Attr {
				if a.Name.Local == "points" {
					points := strings.Fields(a.Value)
					ends = append(ends, points[0]+" "+points[len(points)-1])
				}
			}
		case xml.CharData:
			text += string(token) + "\n"
		}
	}
	// Three panels with a start of three sizes, the first of them with a restart of two sizes too.
	want := map[string]int{"polyline": 4, "circle": 3*3 + 2}
	if d := cmp.Diff(want, map[string]int{"polyline": elements["polyline"], "circle": elements["circle"]}); d != "" {
		t.Errorf("elements (-want +got):\n%s", d)
	}
	// From 400 to 10,000 Jobs, from two thirds of the height to all of it; the part that took no time ends between them at the bottom.
	if d := cmp.Diff([]string{"70.0,170.7 710.0,84.0", "70.0,344.0 390.0,344.0"}, ends[:2]); d != "" {
		t.Errorf("ends of lines (-want +got):\n%s", d)
	}
	for _, label := range []string{"growth, by Jobs of the set (median of 1)", "restart & more", "wall for each Job, ms", "10000"} {
		if !strings.Contains(text, label) {
			t.Errorf("the plot does not say %q", label)
		}
	}
	if plot := (&Scenario{Name: "growth"}).PlotGrowth(); plot != nil {
		t.Errorf("a plot of nothing: %s", plot)
	}
}

func TestReportHasTableAndPlotOfGrowth(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := Write(dir, []*Scenario{grown("growth+endpoints"), {Name: "big", Runs: 1}}, &out); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	want := "growth+endpoints: wall for each Job, ms, with the ratio to the smallest set (1 is linear) start 400 Jobs: 20 2000 Jobs: 20 (1) 10000 Jobs: 30 (1.50)"
	if !strings.Contains(got, want) {
		t.Errorf("the report has no %q: %s", want, got)
	}
	if _, err := os.Stat(filepath.Join(dir, "growth+endpoints-by-jobs.svg")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "big-by-jobs.svg")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a plot of growth of a scenario without any: %v", err)
	}
}
