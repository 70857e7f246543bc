// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

func TestRow(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas *int32
		status   leaderworkerset.LeaderWorkerSetStatus
		want     []any
	}{
		"a new set has blank cells":      {replicas: ptr.To[int32](2), want: []any{"a", nil, int64(2), nil, "5s", "Pending", nil}},
		"counts":                         {replicas: ptr.To[int32](3), status: leaderworkerset.LeaderWorkerSetStatus{ReadyReplicas: 1, UpdatedReplicas: 2}, want: []any{"a", int64(1), int64(3), int64(2), "5s", "Pending", nil}},
		"a set without groups desires 0": {replicas: ptr.To[int32](0), want: []any{"a", nil, int64(0), nil, "5s", "Pending", nil}},
		"pods are refused": {replicas: ptr.To[int32](1), status: leaderworkerset.LeaderWorkerSetStatus{Conditions: []metav1.Condition{
			{Type: "PodCreationFailure", Status: metav1.ConditionTrue, Reason: "QuotaExceeded"},
		}}, want: []any{"a", nil, int64(1), nil, "5s", "Pending", "QuotaExceeded"}},
		"children are refused": {replicas: ptr.To[int32](1), status: leaderworkerset.LeaderWorkerSetStatus{Conditions: []metav1.Condition{
			{Type: "ChildCreationFailure", Status: metav1.ConditionTrue, Reason: "NameConflict"},
		}}, want: []any{"a", nil, int64(1), nil, "5s", "Pending", "NameConflict"}},
		"pods without a node": {replicas: ptr.To[int32](1), status: leaderworkerset.LeaderWorkerSetStatus{Conditions: []metav1.Condition{
			{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "GroupsProgressing"}, {Type: "PodsUnschedulable", Status: metav1.ConditionTrue, Reason: "Unschedulable"},
		}}, want: []any{"a", nil, int64(1), nil, "5s", "Progressing", "Unschedulable"}},
		"groups start": {replicas: ptr.To[int32](1), status: leaderworkerset.LeaderWorkerSetStatus{Conditions: []metav1.Condition{
			{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "GroupsProgressing"},
		}}, want: []any{"a", nil, int64(1), nil, "5s", "Progressing", "GroupsProgressing"}},
		"all groups are ready": {replicas: ptr.To[int32](1), status: leaderworkerset.LeaderWorkerSetStatus{Conditions: []metav1.Condition{
			{Type: "Available", Status: metav1.ConditionTrue, Reason: "AllGroupsReady"},
		}}, want: []any{"a", nil, int64(1), nil, "5s", "Available", nil}},
		"a number of groups is not known": {want: []any{"a", nil, nil, nil, "5s", "Pending", nil}},
	} {
		lws := &leaderworkerset.LeaderWorkerSet{Status: tc.status}
		lws.Name, lws.Spec.Replicas = "a", tc.replicas
		if diff := cmp.Diff(tc.want, row(lws, "5s")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var names []string
	for _, column := range columns {
		names = append(names, column.Name)
		if wide := column.Priority != 0; wide != (column.Name == "Reason" || column.Name == "Phase") { // upstream's columns are shown always
			t.Errorf("%s is shown with -o wide only: %t", column.Name, wide)
		}
	}
	if diff := cmp.Diff([]string{"Name", "Ready", "Desired", "Up-to-date", "Age", "Phase", "Reason"}, names); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
