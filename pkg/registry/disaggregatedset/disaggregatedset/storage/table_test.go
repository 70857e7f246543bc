// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
)

func TestRow(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       []any
	}{
		"a new set":            {want: []any{"a", "5s", "Pending", "0/0", nil}},
		"children are refused": {[]metav1.Condition{{Type: "ChildCreationFailure", Status: metav1.ConditionTrue, Reason: "NameConflict"}}, []any{"a", "5s", "Pending", "0/0", "NameConflict"}},
		"they were refused":    {[]metav1.Condition{{Type: "ChildCreationFailure", Status: metav1.ConditionFalse, Reason: "ChildrenCreated"}}, []any{"a", "5s", "Pending", "0/0", nil}},
		"the namespace is new": {[]metav1.Condition{{Type: "NamespaceRecreated", Status: metav1.ConditionTrue, Reason: "NamespaceRecreated"}}, []any{"a", "5s", "Pending", "0/0", "NamespaceRecreated"}},
		"a role over quota": {[]metav1.Condition{
			{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "RolloutInProgress"}, {Type: "RolesBlocked", Status: metav1.ConditionTrue, Reason: "QuotaExceeded"},
		}, []any{"a", "5s", "Progressing", "0/0", "QuotaExceeded"}},
		"a rollout": {[]metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "RolloutInProgress"}}, []any{"a", "5s", "Progressing", "0/0", "RolloutInProgress"}},
		"all ready": {[]metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue, Reason: "AllRolesReady"}}, []any{"a", "5s", "Available", "0/0", nil}},
	} {
		ds := &disaggregatedset.DisaggregatedSet{Status: disaggregatedset.DisaggregatedSetStatus{Conditions: tc.conditions}}
		ds.Name = "a"
		if diff := cmp.Diff(tc.want, row(ds, "5s")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, column := range columns {
		if wide := column.Priority != 0; wide != slices.Contains([]string{"Phase", "Ready", "Reason"}, column.Name) { // upstream's columns are shown always
			t.Errorf("%s is shown with -o wide only: %t", column.Name, wide)
		}
	}
}
