// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// TestFaultOfARole: a set says in its own status what keeps one of its LeaderWorkerSets back, with the reason of that set.
func TestFaultOfARole(t *testing.T) {
	ds := service(1)
	revision := revisionOf(t, ds)
	role := func(name, role, revision string, conditions ...metav1.Condition) Child {
		lws := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			disaggregatedsetv1.RoleLabelKey: role, disaggregatedsetv1.RevisionLabelKey: revision, disaggregatedsetv1.SliceLabelKey: "0",
		}}}
		lws.Status.Conditions = conditions
		return ChildOf(lws)
	}
	quota := metav1.Condition{Type: "PodCreationFailure", Status: metav1.ConditionTrue, Reason: "QuotaExceeded", Message: "exceeded quota: q"}
	waits := metav1.Condition{Type: "PodsUnschedulable", Status: metav1.ConditionTrue, Reason: "Unschedulable", Message: "no node"}
	over := quota
	over.Status = metav1.ConditionFalse
	going := role("c", "decode", revision, quota)
	going.Deleting = true
	for _, tc := range []struct {
		name     string
		children []Child
		want     string
	}{
		{name: "no fault", children: []Child{role("a", "prefill", revision), role("b", "decode", revision, over), going}},
		{"a fault", []Child{role("a", "prefill", revision), role("b", "decode", revision, quota)}, "True QuotaExceeded LeaderWorkerSet b of role decode: exceeded quota: q"},
		{"the current revision comes first", []Child{role("a", "prefill", "old", waits), role("b", "decode", revision, quota)}, "True QuotaExceeded LeaderWorkerSet b of role decode: exceeded quota: q"},
		{"the first by name", []Child{role("b", "decode", revision, quota), role("a", "prefill", revision, waits)}, "True Unschedulable LeaderWorkerSet a of role prefill: no node"},
		{"a fault of the former revision", []Child{role("a", "prefill", "old", waits), role("b", "decode", revision)}, "True Unschedulable LeaderWorkerSet a of role prefill: no node"},
		{"no fault any more", []Child{role("a", "prefill", revision)}, "False RolesUnblocked no LeaderWorkerSet of the set has a fault"},
	} {
		out := Finish(Observed{Set: ds, Children: tc.children, Now: metav1.NewTime(time.Unix(1e9, 0))}, Plan{Revision: revision}, Results{})
		got := ""
		if out.Status == nil {
			out.Status = &ds.Status
		}
		if c := meta.FindStatusCondition(out.Status.Conditions, disaggregatedsetv1.ConditionRolesBlocked); c != nil {
			got = string(c.Status) + " " + c.Reason + " " + c.Message
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if tc.want != "" {
			ds = ds.DeepCopy()
			ds.Status = *out.Status
		}
	}
}

// TestConditionsAreOfTheGeneration: kubectl wait ignores a condition of an earlier generation, so one that still holds says so.
func TestConditionsAreOfTheGeneration(t *testing.T) {
	ds := service(1)
	ds.Generation = 2
	ds.Status.Conditions = []metav1.Condition{
		{Type: disaggregatedsetv1.ConditionChildCreationFailure, Status: metav1.ConditionTrue, Reason: "QuotaExceeded", Message: "Could not create a: q", ObservedGeneration: 1},
		{Type: disaggregatedsetv1.ConditionRolesBlocked, Status: metav1.ConditionFalse, Reason: "RolesUnblocked", ObservedGeneration: 1},
	}
	refused := hostplan.BlockedChild{What: "Could not create a", Refusal: hostplan.Refusal{Reason: "QuotaExceeded", Message: "q, used: 2"}}
	out := Finish(Observed{Set: ds, Now: metav1.NewTime(time.Unix(1e9, 0))}, Plan{Revision: revisionOf(t, ds)}, Results{Blocked: []hostplan.BlockedChild{refused}})
	for _, c := range out.Status.Conditions {
		if c.ObservedGeneration != 2 {
			t.Errorf("%s %s %s is of generation %d, want 2", c.Type, c.Status, c.Message, c.ObservedGeneration)
		}
	}
}
