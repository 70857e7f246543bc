// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

// restored lets the alerts of the groups write their series, as those of a Prometheus that has started do, and returns their names.
func restored(groups []*rules.Group) map[string]bool {
	names := map[string]bool{}
	for _, group := range groups {
		for _, rule := range group.Rules() {
			if alert, ok := rule.(*rules.AlertingRule); ok {
				alert.SetRestored(true)
				names[alert.Name()] = true
			}
		}
	}
	return names
}

// firingNow returns the alerts of that name that fire.
func firingNow(groups []*rules.Group, name string) (all []firing) {
	for _, group := range groups {
		for _, rule := range group.Rules() {
			alert, ok := rule.(*rules.AlertingRule)
			if !ok || alert.Name() != name {
				continue
			}
			for _, active := range alert.ActiveAlerts() {
				if active.State == rules.StateFiring {
					all = append(all, firing{withoutName(active.Labels), active.Annotations.Map()})
				}
			}
		}
	}
	return all
}

func withoutName(all labels.Labels) map[string]string {
	out := all.Map()
	delete(out, "alertname")
	return out
}

func sorted(alerts []firing) []firing {
	return slices.SortedFunc(slices.Values(alerts), func(a, b firing) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// inOrder returns the groups in the order of their names that is given, which must have all of them.
func inOrder(t *testing.T, loaded map[string]*rules.Group, order []string) []*rules.Group {
	t.Helper()
	groups := make([]*rules.Group, len(order))
	for _, group := range loaded {
		at := slices.Index(order, group.Name())
		if at < 0 || len(loaded) != len(order) {
			t.Fatalf("group_eval_order %q must have all %d groups, also %s", order, len(loaded), group.Name())
		}
		groups[at] = group
	}
	return groups
}
