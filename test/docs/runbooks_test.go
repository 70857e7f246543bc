// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAlertsHaveRunbooks compares the alerts with the pages of docs/operations/runbooks and with the index of alarms.
func TestAlertsHaveRunbooks(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "artifacts/monitoring/rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(content, &rules); err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(root, "docs/operations/alarms.md"))
	if err != nil {
		t.Fatal(err)
	}
	alerts := map[string]bool{}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			alerts[rule.Alert] = true
			page := "runbooks/" + rule.Alert + ".md"
			if !strings.HasSuffix(rule.Annotations["runbook_url"], "/docs/operations/"+page) || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s: annotations: %v", rule.Alert, rule.Annotations)
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
				t.Errorf("%s: severity %q", rule.Alert, rule.Labels["severity"])
			}
			if !strings.Contains(string(index), "| ["+rule.Alert+"]("+page+") |") {
				t.Errorf("docs/operations/alarms.md does not have %s", rule.Alert)
			}
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs/operations/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range pages {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		names[name] = true
		content, err := os.ReadFile(file)
		for _, part := range []string{"# " + name + "\n", "Severity: ", "## Meaning\n", "## Impact\n", "## Diagnosis\n", "## Fix\n"} {
			if err != nil || !strings.Contains(string(content), part) {
				t.Errorf("%s does not have %q (%v)", file, part, err)
			}
		}
	}
	if !maps.Equal(alerts, names) || strings.Count(string(index), "](runbooks/") != len(alerts) {
		t.Errorf("alerts %v, pages %v", slices.Sorted(maps.Keys(alerts)), slices.Sorted(maps.Keys(names)))
	}
}
