// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

const (
	testFile = "../../artifacts/monitoring/rules_test.yaml"
	wantOnce = "must fire in a test and stay silent in another"
)

// ruleTests is the part of the format of promtool's test files that our tests use.
type ruleTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	GroupOrder         []string       `yaml:"group_eval_order"`
	Tests              []ruleTest     `yaml:"tests"`
}

type ruleTest struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Input    []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Alerts []alertTest `yaml:"alert_rule_test"`
}

type alertTest struct {
	EvalTime model.Duration `yaml:"eval_time"`
	Name     string         `yaml:"alertname"`
	Want     []firing       `yaml:"exp_alerts"`
}

// firing is an alert that fires. The label with its name is left out.
type firing struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func readRuleTests(t *testing.T) (tests ruleTests) {
	t.Helper()
	content, err := os.ReadFile(testFile)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&tests); err != nil {
		t.Fatal(err)
	}
	for i, file := range tests.RuleFiles {
		tests.RuleFiles[i] = filepath.Join(filepath.Dir(testFile), file)
	}
	return tests
}

// TestRules runs the tests of the rules with the engine of Prometheus. promtool test rules runs the same file.
func TestRules(t *testing.T) {
	tests := readRuleTests(t)
	fires, silent, alerts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		t.Run(test.Name, func(t *testing.T) {
			for name := range test.run(t, &tests) {
				alerts[name] = true
			}
		})
		for _, alert := range test.Alerts {
			fires[alert.Name] = fires[alert.Name] || len(alert.Want) > 0
			silent[alert.Name] = silent[alert.Name] || len(alert.Want) == 0
		}
	}
	for _, name := range slices.Sorted(maps.Keys(alerts)) {
		if !fires[name] || !silent[name] {
			t.Errorf("%s %s: fires %t, silent %t", name, wantOnce, fires[name], silent[name])
		}
	}
	for name := range fires {
		if !alerts[name] {
			t.Errorf("%s is tested and does not exist", name)
		}
	}
	t.Logf("%d alerts in %d tests", len(alerts), len(tests.Tests))
}

// run evaluates the rules while the series grow, and returns the names of all alerts.
func (r *ruleTest) run(t *testing.T, tests *ruleTests) map[string]bool {
	t.Helper()
	var load strings.Builder
	fmt.Fprintf(&load, "load %s\n", r.Interval)
	for _, input := range r.Input {
		fmt.Fprintf(&load, "  %s %s\n", input.Series, input.Values)
	}
	loader, err := promqltest.NewLazyLoader(load.String(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := loader.Close(); err != nil {
			t.Error(err)
		}
	}()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), Appendable: loader.Storage(), Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(), Parser: parser.NewParser(parser.Options{}),
	})
	loaded, errs := manager.LoadGroups(time.Duration(tests.EvaluationInterval), labels.EmptyLabels(), "", nil, false, tests.RuleFiles...)
	if errs != nil {
		t.Fatal(errs)
	}
	groups := inOrder(t, loaded, tests.GroupOrder)
	found := restored(groups)
	var end time.Duration
	for _, alert := range r.Alerts {
		end = max(end, time.Duration(alert.EvalTime))
	}
	for at := time.Duration(0); at <= end; at += time.Duration(tests.EvaluationInterval) {
		r.evaluate(t, loader, groups, at)
	}
	return found
}

// evaluate evaluates all groups and compares the alerts that a test has for this time.
func (r *ruleTest) evaluate(t *testing.T, loader *promqltest.LazyLoader, groups []*rules.Group, at time.Duration) {
	t.Helper()
	now := time.Unix(0, 0).UTC().Add(at)
	loader.WithSamplesTill(now, func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range groups {
			group.Eval(loader.Context(), now)
			for _, rule := range group.Rules() {
				if err := rule.LastError(); err != nil {
					t.Fatalf("%s at %s: %v", rule.Name(), at, err)
				}
			}
		}
	})
	for _, test := range r.Alerts {
		if time.Duration(test.EvalTime) != at {
			continue
		}
		if diff := cmp.Diff(sorted(test.Want), sorted(firingNow(groups, test.Name))); diff != "" {
			t.Errorf("%s after %s (- what must fire, + what does):\n%s", test.Name, at, diff)
		}
	}
}
