// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
)

func TestStatus(t *testing.T) {
	ds := service(2)
	revision := revisionOf(t, ds)
	obs := Observed{Set: ds, Now: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	finish := func(children ...Child) disaggregatedsetv1.DisaggregatedSetStatus {
		obs.Children = children
		out := Finish(obs, Plan{Revision: revision}, Results{})
		if out.Status == nil {
			t.Fatal("the status does not change")
		}
		next := *obs.Set
		next.Status = *out.Status
		obs.Set, obs.Now = &next, metav1.NewTime(obs.Now.Add(time.Minute))
		return *out.Status
	}
	const unavailable = "Not all roles have reached their desired replica count, ready and updated to the current revision"
	const available = "All roles have reached their desired replica count, ready and updated to the current revision"
	first := obs.Now
	got := finish(child("a", "prefill", 1), child(revision, "prefill", 1), child("a", "decode", 2))
	want := disaggregatedsetv1.DisaggregatedSetStatus{
		ObservedGeneration: 1,
		RoleStatuses: []disaggregatedsetv1.RoleStatus{
			{Name: "prefill", Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 1}, {Name: "decode", Replicas: 2, ReadyReplicas: 2},
		},
		Conditions: []metav1.Condition{{
			Type: "Progressing", Status: metav1.ConditionTrue, Reason: "RolloutInProgress", Message: unavailable, ObservedGeneration: 1, LastTransitionTime: first,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status of a rollout (-want +got):\n%s", diff)
	}
	second := obs.Now
	got = finish(child(revision, "prefill", 2), child(revision, "decode", 2))
	want.Conditions = []metav1.Condition{
		{Type: "Progressing", Status: metav1.ConditionFalse, Reason: "AllRolesReady", Message: available, ObservedGeneration: 1, LastTransitionTime: second},
		{Type: "Available", Status: metav1.ConditionTrue, Reason: "AllRolesReady", Message: available, ObservedGeneration: 1, LastTransitionTime: second},
	}
	if diff := cmp.Diff(want.Conditions, got.Conditions); diff != "" {
		t.Errorf("conditions at rest (-want +got):\n%s", diff)
	}
	if out := Finish(obs, Plan{Revision: revision}, Results{}); out.Status != nil {
		t.Errorf("a set at rest gets the status %+v", out.Status)
	}
	lost := child(revision, "decode", 2)
	lost.Ready = 1
	got = finish(child(revision, "prefill", 2), lost)
	if c := got.Conditions[1]; c.Status != metav1.ConditionFalse || c.Reason != "RolloutInProgress" || got.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("conditions with a group that is not ready: %+v", got.Conditions)
	}
}

// A role that is scaled by others is not available before it has a scaler, whatever it has.
func TestStatusWithoutScaler(t *testing.T) {
	ds := service(2)
	ds.Spec.Roles[0].Scaling = &disaggregatedsetv1.RoleScaling{Mode: disaggregatedsetv1.RoleScalingExternal}
	revision := revisionOf(t, ds)
	obs := Observed{Set: ds, Children: []Child{child(revision, "prefill", 2), child(revision, "decode", 2)}, Now: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	if got := status(obs, Plan{Revision: revision}).Conditions[0].Type; got != "Progressing" {
		t.Errorf("without a scaler: %s", got)
	}
	scaler := newScaler(ds, "prefill", 2)
	obs.Scalers = []*disaggregatedsetv1.DisaggregatedSetRoleScaler{scaler}
	if got := status(obs, Plan{Revision: revision}).Conditions[0].Type; got != "Available" {
		t.Errorf("with a scaler: %s", got)
	}
	next := scalerStatuses(obs, Plan{})
	if len(next) != 1 {
		t.Fatalf("%d scalers change, want 1", len(next))
	}
	want := disaggregatedsetv1.DisaggregatedSetRoleScalerStatus{
		Replicas: 2, Selector: "disaggregatedset.x-k8s.io/name=llm,disaggregatedset.x-k8s.io/role=prefill,leaderworkerset.sigs.k8s.io/worker-index=0",
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Bound", Message: "Scaler bound to a live DisaggregatedSet role", LastTransitionTime: obs.Now}},
	}
	if diff := cmp.Diff(want, next[0].Status); diff != "" {
		t.Errorf("status of the scaler (-want +got):\n%s", diff)
	}
	obs.Scalers = next
	if again := scalerStatuses(obs, Plan{}); len(again) > 0 {
		t.Errorf("it changes again: %+v", again[0].Status)
	}
}

// A count that a user has forged must not lead to a status that the server always refuses.
func TestStatusOfForgedCounts(t *testing.T) {
	ds := service(2)
	ds.Spec.Roles[0].Scaling = &disaggregatedsetv1.RoleScaling{Mode: disaggregatedsetv1.RoleScalingExternal}
	revision := revisionOf(t, ds)
	huge, other, negative := child(revision, "prefill", math.MaxInt32), child("a", "prefill", math.MaxInt32), child(revision, "decode", 1)
	negative.Current, negative.Ready, negative.Updated = -5, -5, -5
	obs := Observed{Set: ds, Children: []Child{huge, other, negative}, Scalers: []*disaggregatedsetv1.DisaggregatedSetRoleScaler{newScaler(ds, "prefill", 2)}}
	want := []disaggregatedsetv1.RoleStatus{{Name: "prefill", Replicas: math.MaxInt32, ReadyReplicas: math.MaxInt32, UpdatedReplicas: math.MaxInt32}, {Name: "decode"}}
	if diff := cmp.Diff(want, status(obs, Plan{Revision: revision}).RoleStatuses); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if got := scalerStatuses(obs, Plan{})[0].Status.Replicas; got != math.MaxInt32 {
		t.Errorf("the scaler has %d groups", got)
	}
}

func TestEvents(t *testing.T) {
	ds := service(2)
	p := Plan{
		Revision: "e61c8ac2", CreateScalers: []*disaggregatedsetv1.DisaggregatedSetRoleScaler{newScaler(ds, "prefill", 1)},
		DeleteScalers: []Ref{{Name: "llm-decode"}}, Conflicts: []string{"llm-old", "llm-new"},
		Slices: []SlicePlan{
			{Slice: 0, Starts: true, Scale: []Scaling{{Ref: Ref{Name: "x"}, Role: "prefill", From: 1, To: 2}, {Ref: Ref{Name: "y"}, Role: "decode", From: 2, To: 1}}},
			{Slice: 3, DeleteChildren: []Deletion{{Ref{Name: "d"}, Drained}, {Ref{Name: "s"}, SliceRemoved}, {Ref{Name: "m"}, Migrated}}, Completes: true},
			{Slice: 4, Starts: true, Scale: []Scaling{{Ref: Ref{Name: "z"}, From: 0, To: 1}}, Completes: true, DeleteChildren: []Deletion{{Ref{Name: "e"}, Drained}}},
		},
	}
	got := events(Observed{Set: ds, Conflicts: map[string]bool{"llm-old": true}}, p, Results{
		CreatedScalers: []int{0}, DeletedScalers: []int{0}, Failed: []FailedWrite{{Create, "no"}},
		Slices: []SliceResult{{Scaled: []int{0, 1}, Done: true}, {DeletedChildren: []int{0, 1, 2}, Done: true}, {}},
	})
	want := []Event{
		{Type: "Normal", Reason: "ScalerCreated", Action: "Create", Note: "Created scaler llm-prefill for role prefill", Related: "llm-prefill"},
		{Type: "Normal", Reason: "ScalerDeleted", Action: "Delete", Note: "Deleted scaler llm-decode (role decode is no longer External)", Related: "llm-decode"},
		{Type: "Normal", Reason: "RollingUpdateStarted", Action: "Update", Note: "Started rolling update to revision e61c8ac2"},
		{Type: "Normal", Reason: "ScalingUp", Action: "Update", Note: "Scaling up prefill LWS x from 1 to 2 replicas", Related: "x"},
		{Type: "Normal", Reason: "ScalingDown", Action: "Update", Note: "Scaling down decode LWS y from 2 to 1 replicas", Related: "y"},
		{Type: "Normal", Reason: "LWSDeleted", Action: "Delete", Note: "Deleted drained LWS d", Related: "d"},
		{Type: "Normal", Reason: "LWSDeleted", Action: "Delete", Note: "Deleted LWS s for removed slice 3", Related: "s"},
		{Type: "Normal", Reason: "LWSDeleted", Action: "Migrate", Note: "Deleted legacy slice-0 LWS m to recreate it in slice-aware form", Related: "m"},
		{Type: "Normal", Reason: "RollingUpdateCompleted", Action: "Update", Note: "Completed rolling update to revision e61c8ac2"},
		{Type: "Warning", Reason: "ScalerConflict", Action: "Conflict", Note: "Scaler llm-new exists but is not controlled by this DisaggregatedSet; not adopting", Related: "llm-new"},
		{Type: "Warning", Reason: "FailedCreate", Action: "Create", Note: "no"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	ds.DeletionTimestamp = ptr.To(metav1.Now())
	if out := Finish(Observed{Set: ds}, Plan{}, Results{}); out.Status != nil || len(out.Events) > 0 {
		t.Errorf("a set that is being deleted: %+v", out)
	}
}
