// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

func sequence(change ...func(*batchv1alpha1.SequentialJob)) *batchv1alpha1.SequentialJob {
	sj := &batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "etl", UID: "sequence", Labels: map[string]string{QueueKey: "team", PriorityClassKey: "high", MaxExecTimeKey: "600"},
	}}
	sj.Spec.Containers = []corev1.Container{asking("extract", "cpu", "1"), asking("load", "cpu", "2")}
	for _, c := range change {
		c(sj)
	}
	return sj
}

func suspended(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(true) }

func failed(sj *batchv1alpha1.SequentialJob) {
	sj.Status.Conditions = []metav1.Condition{condition(batchv1alpha1.ConditionFailed, metav1.ConditionTrue, "JobFailed", "Job 1 failed: BackoffLimitExceeded")}
}

func completed(sj *batchv1alpha1.SequentialJob) {
	sj.Status.Conditions = []metav1.Condition{condition(batchv1alpha1.ConditionComplete, metav1.ConditionTrue, "AllJobsCompleted", "")}
}

// held returns the Workload of the sequence with these conditions True, and more changes.
func held(conditions []string, change ...func(*Workload)) *Workload {
	w := NewWorkload(sequence(), 100)
	for _, c := range conditions {
		w.Status.Conditions = append(w.Status.Conditions, condition(c, metav1.ConditionTrue, "Because", "words"))
	}
	for _, c := range change {
		c(w)
	}
	return w
}

var (
	reserved = []string{ConditionQuotaReserved}
	admitted = []string{ConditionQuotaReserved, ConditionAdmitted}
	evicted  = []string{ConditionQuotaReserved, ConditionAdmitted, ConditionEvicted}
	finished = []string{ConditionQuotaReserved, ConditionAdmitted, ConditionFinished}
)

func isDeleted(w *Workload) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func free(w *Workload) { w.Finalizers = nil }

func TestDecideHold(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) func(*Workload) {
		return func(w *Workload) {
			w.Status.Conditions = append(w.Status.Conditions, condition(ConditionPodsReady, status, reason, ""))
		}
	}
	podsReady := func(status metav1.ConditionStatus, reason string) HoldPlan {
		c := condition(ConditionPodsReady, status, reason, "Not all pods of the current step are ready")
		if status == metav1.ConditionTrue {
			c.Message = "All pods of the current step are ready"
		}
		return HoldPlan{Apply: &c}
	}
	ends := func(reason, message string) HoldPlan {
		c := condition(ConditionFinished, metav1.ConditionTrue, reason, message)
		return HoldPlan{Apply: &c}
	}
	larger := func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Containers[1] = asking("load", "cpu", "3") }
	smaller := func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Containers[1] = asking("load", "cpu", "1") }
	atLast := func(sj *batchv1alpha1.SequentialJob) { sj.Status.Progress.CurrentIndex = ptr.To[int32](1) }
	for name, test := range map[string]struct {
		holding Holding
		want    HoldPlan
	}{
		"a new sequence":          {Holding{SequentialJob: sequence()}, HoldPlan{Create: NewWorkload(sequence(), 100)}},
		"a suspended one":         {Holding{SequentialJob: sequence(suspended)}, HoldPlan{}},
		"something runs":          {Holding{SequentialJob: sequence(), Busy: true}, HoldPlan{}},
		"waits for quota":         {Holding{SequentialJob: sequence(), Workload: held(nil)}, HoldPlan{}},
		"quota without admission": {Holding{SequentialJob: sequence(), Workload: held(reserved)}, HoldPlan{}},
		"admitted": {
			Holding{SequentialJob: sequence(), Workload: held(admitted)},
			podsReady(metav1.ConditionFalse, "WaitForStart"),
		},
		"waits for its pods": {
			Holding{SequentialJob: sequence(), Workload: held(admitted, ready(metav1.ConditionFalse, "WaitForStart"))},
			HoldPlan{},
		},
		"its pods are ready": {
			Holding{SequentialJob: sequence(), Ready: true, Workload: held(admitted, ready(metav1.ConditionFalse, "WaitForStart"))},
			podsReady(metav1.ConditionTrue, "Started"),
		},
		"they are no longer": {
			Holding{SequentialJob: sequence(), Workload: held(admitted, ready(metav1.ConditionTrue, "Started"))},
			podsReady(metav1.ConditionFalse, "WaitForRecovery"),
		},
		"they are again": {
			Holding{SequentialJob: sequence(), Ready: true, Workload: held(admitted, ready(metav1.ConditionFalse, "WaitForRecovery"))},
			podsReady(metav1.ConditionTrue, "Recovered"),
		},
		"suspended with quota": {
			Holding{SequentialJob: sequence(suspended), Workload: held(admitted)},
			HoldPlan{Patch: &HoldPatch{Activation: Deactivate}},
		},
		"evicted while a child runs": {Holding{SequentialJob: sequence(), Busy: true, Workload: held(evicted)}, HoldPlan{}},
		"asks for more with quota":   {Holding{SequentialJob: sequence(larger), Workload: held(admitted)}, HoldPlan{Delete: true}},
		"asks for more without": {
			Holding{SequentialJob: sequence(larger), Workload: held(nil)},
			HoldPlan{Patch: &HoldPatch{PodSets: Shape(sequence(larger))}},
		},
		"a step that runs asks for more": {
			Holding{SequentialJob: sequence(larger, atLast), Started: true, Busy: true, Workload: held(admitted, ready(metav1.ConditionFalse, "WaitForStart"))},
			HoldPlan{},
		},
		"one that was evicted asks for less": {
			Holding{SequentialJob: sequence(smaller, atLast), Started: true, Workload: held(nil)}, HoldPlan{},
		},
		"one that has not begun asks for less": {
			Holding{SequentialJob: sequence(smaller, atLast), Workload: held(nil)}, HoldPlan{Patch: &HoldPatch{PodSets: Shape(sequence(smaller, atLast))}},
		},
		"another queue without quota": {
			Holding{SequentialJob: sequence(inQueue("other")), Workload: held(nil)},
			HoldPlan{Patch: &HoldPatch{QueueName: ptr.To("other")}},
		},
		"another queue with quota": {
			Holding{SequentialJob: sequence(inQueue("other")), Workload: held(admitted, ready(metav1.ConditionFalse, "WaitForStart"))},
			HoldPlan{},
		},
		"its deletion waits for pods": {
			Holding{SequentialJob: sequence(), Busy: true, Workload: held(admitted, isDeleted)},
			HoldPlan{},
		},
		"its deletion": {
			Holding{SequentialJob: sequence(), Workload: held(admitted, isDeleted)},
			HoldPlan{Unhold: true},
		},
		"completed": {
			Holding{SequentialJob: sequence(completed), Workload: held(admitted)},
			ends("Succeeded", "All steps of the SequentialJob have completed"),
		},
		"failed while pods stop": {Holding{SequentialJob: sequence(failed), Busy: true, Workload: held(admitted)}, HoldPlan{}},
		"failed": {
			Holding{SequentialJob: sequence(failed), Workload: held(admitted)},
			ends("Failed", "Job 1 failed: BackoffLimitExceeded"),
		},
		"completed and noted": {
			Holding{SequentialJob: sequence(completed), Workload: held(finished)},
			HoldPlan{Unhold: true},
		},
		"completed and let go": {Holding{SequentialJob: sequence(completed), Workload: held(finished, free)}, HoldPlan{}},
		"retried":              {Holding{SequentialJob: sequence(), Workload: held(finished, free)}, HoldPlan{Delete: true}},
		"the sequence is gone": {Holding{Workload: held(admitted)}, ends("OwnerNotFound", "The SequentialJob is gone")},
		"no queue is named any more": {
			Holding{SequentialJob: sequence(inQueue("")), Workload: held(admitted)},
			ends("Succeeded", "The SequentialJob holds no quota any more"),
		},
		"the gate was switched off": {
			Holding{SequentialJob: sequence(), Off: true, Workload: held(admitted)},
			ends("Succeeded", "The SequentialJob holds no quota any more"),
		},
		"off, and there never was one": {Holding{SequentialJob: sequence(), Off: true}, HoldPlan{}},
	} {
		t.Run(name, func(t *testing.T) {
			test.holding.Priority = 100
			if diff := cmp.Diff(test.want, DecideHold(test.holding)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func inQueue(name string) func(*batchv1alpha1.SequentialJob) {
	return func(sj *batchv1alpha1.SequentialJob) { sj.Labels[QueueKey] = name }
}

// TestEvictionGivesQuotaBack checks the conditions that no test of Kueue's would miss.
func TestEvictionGivesQuotaBack(t *testing.T) {
	for reason, requeued := range map[string]metav1.ConditionStatus{
		"Preempted": metav1.ConditionTrue, "NodeFailures": metav1.ConditionTrue, "Deactivated": metav1.ConditionFalse, "PodsReadyTimeout": metav1.ConditionFalse,
	} {
		w := held(admitted)
		w.Status.Conditions = append(w.Status.Conditions, condition(ConditionEvicted, metav1.ConditionTrue, reason, "for a reason"))
		w.Status.Admission = &Admission{ClusterQueue: "all"}
		got := &Workload{}
		got.Status.Conditions = DecideHold(Holding{SequentialJob: sequence(), Workload: w, Priority: 100}).Release
		for conditionType, want := range map[string]metav1.Condition{
			ConditionQuotaReserved: {Status: metav1.ConditionFalse, Reason: "Pending", Message: "for a reason"},
			ConditionAdmitted:      {Status: metav1.ConditionFalse, Reason: "NoReservation", Message: "The Workload has no reservation"},
			ConditionRequeued:      {Status: requeued, Reason: reason, Message: "for a reason"},
			ConditionEvicted:       {Status: metav1.ConditionTrue, Reason: reason, Message: "for a reason"},
		} {
			want.Type = conditionType
			if diff := cmp.Diff(&want, got.Condition(conditionType)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", reason, conditionType, diff)
			}
		}
		// The next decision is one of a Workload without quota: the user suspends, and so on.
		got.ObjectMeta, got.Spec = w.ObjectMeta, w.Spec
		if next := DecideHold(Holding{SequentialJob: sequence(), Workload: got, Priority: 100}); next.Release != nil {
			t.Errorf("%s: given back twice", reason)
		}
	}
}

func TestHolds(t *testing.T) {
	for name, test := range map[string]struct {
		workload *Workload
		want     bool
	}{
		"none":             {nil, false},
		"quota only":       {held(reserved), false},
		"admitted":         {held(admitted), true},
		"evicted":          {held(evicted), false},
		"being deleted":    {held(admitted, isDeleted), false},
		"being suspended":  {held(admitted, func(w *Workload) { w.Spec.Active = ptr.To(false) }), false},
		"of an older life": {held(finished), false},
	} {
		if got := Holds(test.workload); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNewWorkload(t *testing.T) {
	w := NewWorkload(sequence(), 100)
	if want := "sequentialjob-etl-a7b26"; len(w.Name) != len(want) || w.Name[:18] != want[:18] || w.Name != NewWorkload(sequence(), 0).Name {
		t.Errorf("name %q", w.Name)
	}
	again := sequence(func(sj *batchv1alpha1.SequentialJob) { sj.UID = "another" })
	if WorkloadName(again) == w.Name {
		t.Error("a sequence that was deleted and created again has the same Workload")
	}
	long := WorkloadName(sequence(func(sj *batchv1alpha1.SequentialJob) {
		sj.Name = "a-name-that-is-as-long-as-a-sequence-may-be-called-0123456789"
	}))
	if len(long) > 63 {
		t.Errorf("%q has %d characters", long, len(long))
	}
	owner := w.Owner()
	if owner == nil || owner.UID != "sequence" || !ptr.Deref(owner.BlockOwnerDeletion, false) || w.Labels[JobUIDKey] != "sequence" || !inUse(w) {
		t.Errorf("metadata %+v", w.ObjectMeta)
	}
	want := WorkloadSpec{
		PodSets: Shape(sequence()), QueueName: "team", Priority: ptr.To[int32](100), MaximumExecutionTimeSeconds: ptr.To[int32](600),
		PriorityClassRef: &PriorityClassRef{Group: "kueue.x-k8s.io", Kind: "WorkloadPriorityClass", Name: "high"},
	}
	if diff := cmp.Diff(want, w.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestGivesBack: a Workload that is replaced keeps its quota until its finalizer is removed, so that its deletion does not have to wait for
// the child, which is stopped because of it.
func TestGivesBack(t *testing.T) {
	for name, tc := range map[string]struct {
		workload *Workload
		plan     HoldPlan
		want     bool
	}{
		"it is deleted":              {held(admitted), HoldPlan{Delete: true}, false},
		"its finalizer is removed":   {held(admitted, isDeleted), HoldPlan{Unhold: true}, true},
		"its admission is removed":   {held(evicted), HoldPlan{Release: []metav1.Condition{}}, true},
		"it finishes":                {held(admitted), HoldPlan{Apply: &metav1.Condition{Type: ConditionFinished}}, true},
		"its pods are ready":         {held(admitted), HoldPlan{Apply: &metav1.Condition{Type: ConditionPodsReady}}, false},
		"it has finished":            {held(finished), HoldPlan{Unhold: true}, false},
		"it waits for quota":         {held(nil, isDeleted), HoldPlan{Unhold: true}, false},
		"there is none to give back": {nil, HoldPlan{Create: held(nil)}, false},
	} {
		if got := tc.plan.GivesBack(tc.workload); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
