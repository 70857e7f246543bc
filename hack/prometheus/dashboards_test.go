// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// TestDashboardsFilter checks that every selector of every query is limited to the clusters that a user selects, and the metrics that have names of
// sets also to the namespaces. All clusters includes series without the label.
func TestDashboardsFilter(t *testing.T) {
	files, err := filepath.Glob("../../artifacts/monitoring/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards (%v)", err)
	}
	selectors := 0
	for _, file := range files {
		var dashboard struct {
			Templating struct {
				List []struct{ Name, AllValue string }
			}
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		content, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(content, &dashboard)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all := map[string]string{}
		for _, variable := range dashboard.Templating.List {
			all[variable.Name] = variable.AllValue
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				expression := strings.NewReplacer("$cluster", all["cluster"], "$namespace", all["namespace"]).Replace(target.Expr)
				for _, selector := range selectorsOf(t, expression) {
					selectors++
					if !matchesAll(selector, "cluster") || named(selector) != matchesAll(selector, "namespace") {
						t.Errorf("%s: %s: %s must have cluster=~\"$cluster\", and namespace=~\"$namespace\" exactly if it is of single sets",
							filepath.Base(file), panel.Title, selector)
					}
				}
			}
		}
	}
	t.Logf("%d selectors in %d dashboards", selectors, len(files))
}

// TestRulesKeepTheCluster checks that no rule adds up what belongs to several clusters.
func TestRulesKeepTheCluster(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct{ Record, Alert, Expr string }
		}
	}
	content, err := os.ReadFile("../../artifacts/monitoring/rules.yaml")
	if err == nil {
		err = yaml.Unmarshal(content, &file)
	}
	if err != nil || len(file.Groups) == 0 {
		t.Fatalf("%d groups (%v)", len(file.Groups), err)
	}
	aggregations := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			expression, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
			if err != nil {
				t.Fatalf("%s%s: %v", rule.Record, rule.Alert, err)
			}
			parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
				if aggregation, ok := node.(*parser.AggregateExpr); ok {
					aggregations++
					if aggregation.Without || !slices.Contains(aggregation.Grouping, "cluster") {
						t.Errorf("%s%s: %s must be by (cluster, ...)", rule.Record, rule.Alert, aggregation)
					}
				}
				return nil
			})
		}
	}
	t.Logf("%d aggregations", aggregations)
}

// named returns whether the series of a metric are of single sets.
func named(selector *parser.VectorSelector) bool {
	return slices.Contains([]string{"jobset_ready_ratio", "jobset_goodput_ratio", "jobset_completed_total", "jobset_failed_total"}, selector.Name)
}

// matchesAll returns whether a selector has a regular expression for the label, which all values match, and so does none.
func matchesAll(selector *parser.VectorSelector, label string) bool {
	return slices.ContainsFunc(selector.LabelMatchers, func(m *labels.Matcher) bool {
		return m.Name == label && m.Type == labels.MatchRegexp && m.Matches("") && m.Matches("east")
	})
}

func selectorsOf(t *testing.T, text string) (all []*parser.VectorSelector) {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			all = append(all, selector)
		}
		return nil
	})
	return all
}
