// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
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
		"a new set":            {want: []any{"a", "5s", nil}},
		"children are refused": {[]metav1.Condition{{Type: "ChildCreationFailure", Status: metav1.ConditionTrue, Reason: "NameConflict"}}, []any{"a", "5s", "NameConflict"}},
		"they were refused":    {[]metav1.Condition{{Type: "ChildCreationFailure", Status: metav1.ConditionFalse, Reason: "ChildrenCreated"}}, []any{"a", "5s", nil}},
		"the namespace is new": {[]metav1.Condition{{Type: "NamespaceRecreated", Status: metav1.ConditionTrue, Reason: "NamespaceRecreated"}}, []any{"a", "5s", "NamespaceRecreated"}},
	} {
		ds := &disaggregatedset.DisaggregatedSet{Status: disaggregatedset.DisaggregatedSetStatus{Conditions: tc.conditions}}
		ds.Name = "a"
		if diff := cmp.Diff(tc.want, row(ds, "5s")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, column := range columns {
		if wide := column.Priority != 0; wide != (column.Name == "Reason") { // upstream's columns are shown always
			t.Errorf("%s is shown with -o wide only: %t", column.Name, wide)
		}
	}
}
