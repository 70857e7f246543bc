// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/hack/monitoring/grafana"
)

const root = "../.."

// TestGeneratedFilesAreCurrent compares the files in the checkout with what is generated, and finds dashboards that nothing generates.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generated(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not current (%v): run make generate", name, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(root, dashboardsDir, "*.json"))
	if err != nil || len(found) != len(dashboards()) {
		t.Errorf("files of dashboards: %v (%v), want %d", found, err, len(dashboards()))
	}
	kustomization, err := os.ReadFile(filepath.Join(root, dashboardsDir, "kustomization.yaml"))
	for _, dashboard := range dashboards() {
		if !strings.Contains(string(kustomization), "files: ["+dashboard.UID+".json]") {
			t.Errorf("%s is not in kustomization.yaml (%v)", dashboard.UID, err)
		}
	}
}

// TestRuleObjectHoldsTheRuleFile reads both files.
func TestRuleObjectHoldsTheRuleFile(t *testing.T) {
	read := func(name string) (content map[string]any) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = yaml.UnmarshalStrict(text, &content)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return content
	}
	if diff := cmp.Diff(read(rulesFile), read(ruleObjectFile)["spec"]); diff != "" {
		t.Error(diff)
	}
}

// TestDashboardsAreComplete checks what Grafana needs of each panel.
func TestDashboardsAreComplete(t *testing.T) {
	for _, dashboard := range dashboards() {
		content, err := dashboard.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var model struct {
			Panels []struct {
				ID                       int
				Type, Title, Description string
				GridPos                  struct{ X, Y, W, H int }
				Targets                  []struct{ Expr, RefID string }
			}
		}
		if err := json.Unmarshal(content, &model); err != nil {
			t.Fatal(err)
		}
		ids, end := map[int]bool{}, 0
		for _, panel := range model.Panels {
			name := dashboard.UID + ": " + panel.Title
			if panel.Title == "" || ids[panel.ID] || panel.GridPos.X+panel.GridPos.W > 24 || panel.GridPos.Y < end-8 {
				t.Errorf("%s: %+v", name, panel)
			}
			ids[panel.ID], end = true, panel.GridPos.Y+panel.GridPos.H
			if panel.Type == "row" {
				continue
			}
			if panel.Description == "" || len(panel.Targets) == 0 || slices.ContainsFunc(panel.Targets, func(t struct{ Expr, RefID string }) bool { return t.Expr == "" || t.RefID == "" }) {
				t.Errorf("%s: has no description or no query: %+v", name, panel)
			}
		}
	}
}

func TestRowWithoutPanelsIsRefused(t *testing.T) {
	d := grafana.Dashboard{UID: "empty", Rows: []grafana.Row{{Title: "Nothing"}}}
	if _, err := d.JSON(); err == nil || err.Error() != `dashboard empty: row "Nothing" must have panels` {
		t.Errorf("error: %v", err)
	}
}
