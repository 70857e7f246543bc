// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package features_test

import (
	gocmp "cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

// Names, stages and defaults are what users write into configurations and what may not change by accident.
func TestGates(t *testing.T) {
	want := map[string]string{
		"InPlaceRestart":                         "ALPHA since 0.11, false",
		"RestartJob":                             "ALPHA since 0.12, false",
		"ElasticJobSet":                          "ALPHA since 0.12, false",
		"JobSetActiveDeadlineSeconds":            "ALPHA since 0.13, false",
		"ExecutionAttemptsTracking":              "ALPHA since 0.13, false",
		"MutablePodResourcesForSuspendedJobSets": "ALPHA since 0.13, false",
		"RestartOnFailureTarget":                 "BETA since 0.13, true",
		"ExclusivePlacement":                     "BETA since 0.13, true",
		"JobSetWorkloadAwareSchedulingAPI":       "ALPHA since 0.13, false",
		"SequentialJobWorkload":                  "ALPHA since 0.13, false",
		"DisaggregatedSet":                       "ALPHA since 0.13, false",
		"TLSOptions":                             " since 0.13, true, locked",
	}
	gate, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, specs := range features.Specs() {
		last := specs[len(specs)-1]
		got[string(name)] = fmt.Sprintf("%s since %s, %t", last.PreRelease, last.Version, gate.Enabled(name))
		if last.LockToDefault {
			got[string(name)] += ", locked"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	if err := gate.Set("AllAlpha=true"); err != nil {
		t.Fatal(err)
	}
	for name := range features.Specs() {
		if !gate.Enabled(name) {
			t.Errorf("%s stays off when all alpha features are switched on", name)
		}
	}
}

// The fields of the value that decisions use have the names of the gates, in JSON too, so that no name can drift.
func TestJobSetGates(t *testing.T) {
	for name, specs := range features.Specs() {
		if specs[len(specs)-1].LockToDefault || name == features.SequentialJobWorkload || name == features.DisaggregatedSet {
			continue
		}
		gate, err := features.NewGate()
		if err != nil {
			t.Fatal(err)
		}
		if err := gate.SetFromMap(map[string]bool{"AllBeta": false, string(name): true}); err != nil {
			t.Fatal(err)
		}
		document, err := json.Marshal(features.States(gate))
		if err != nil {
			t.Fatal(err)
		}
		var want gates.Gates
		if err := json.Unmarshal(document, &want); err != nil {
			t.Fatal(err)
		}
		if got := features.JobSet(gate); got != want || got == (gates.Gates{}) {
			t.Errorf("%s on: got %+v, want %+v as in %s", name, got, want, document)
		}
	}
}

// TestGatesAreDocumented compares the table in docs/server.md with the gates.
func TestGatesAreDocumented(t *testing.T) {
	content, err := os.ReadFile("../../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "## Feature gates\n")
	if !found {
		t.Fatal("docs/server.md has no section about feature gates")
	}
	section, _, _ = strings.Cut(section, "\n#")
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ((?:alpha|beta|GA), [^|]+?) \\|").FindAllStringSubmatch(section, -1) {
		got[row[1]] = row[2]
	}
	want := map[string]string{}
	for _, gate := range features.Gates() {
		present := gate.Specs[len(gate.Specs)-1]
		stage := gocmp.Or(strings.ToLower(string(present.PreRelease)), "GA")
		state := map[bool]string{true: "on", false: "off"}[present.Default]
		if present.LockToDefault {
			state = "always " + state
		}
		want[string(gate.Name)] = stage + ", " + state
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gates in docs/server.md (-want +got):\n%s", diff)
	}
}
