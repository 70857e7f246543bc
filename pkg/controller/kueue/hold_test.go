// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// etl is a sequence.
var etl = &metav1.ObjectMeta{Namespace: "default", Name: "etl", UID: "etl-1", Generation: 1}

// TestApplyHold shows each write: what it changes, of which version.
func TestApplyHold(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	known := &plan.Workload{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "w", UID: "u", ResourceVersion: "7", Finalizers: []string{"other", plan.InUseFinalizer},
	}}
	const meta = `"metadata":{"resourceVersion":"7","uid":"u"}`
	for name, test := range map[string]struct {
		plan                     plan.HoldPlan
		verb, subresource, patch string
	}{
		"nothing": {plan.HoldPlan{}, "", "", ""},
		"create":  {plan.HoldPlan{Create: &plan.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w"}}}, "create", "", ""},
		"delete":  {plan.HoldPlan{Delete: true}, "delete", "", ""},
		"unhold":  {plan.HoldPlan{Unhold: true}, "patch", "", `{"metadata":{"finalizers":["other"],"resourceVersion":"7","uid":"u"}}`},
		"queue":   {plan.HoldPlan{Patch: &plan.HoldPatch{QueueName: ptr.To("other")}}, "patch", "", `{` + meta + `,"spec":{"queueName":"other"}}`},
		"priority": {
			plan.HoldPlan{Patch: &plan.HoldPatch{Priority: ptr.To[int32](1)}}, "patch", "", `{` + meta + `,"spec":{"priority":1,"priorityClassRef":null}}`,
		},
		"deactivate": {
			plan.HoldPlan{Patch: &plan.HoldPatch{Activation: plan.Deactivate}}, "patch", "",
			`{"metadata":{"annotations":{"batch.jobset-apiserver.io/deactivated-by":"etl"},"resourceVersion":"7","uid":"u"},"spec":{"active":false}}`,
		},
		"release": {
			plan.HoldPlan{Release: []metav1.Condition{{Type: "QuotaReserved", Status: metav1.ConditionFalse, Reason: "Pending"}}}, "patch", "status",
			`{` + meta + `,"status":{"admission":null,"conditions":[{"type":"QuotaReserved","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Pending","message":""}]}}`,
		},
		"condition": {
			plan.HoldPlan{Apply: &metav1.Condition{Type: "Finished", Status: metav1.ConditionTrue, Reason: "Succeeded"}}, "patch", "status",
			`{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{"name":"w","namespace":"default","resourceVersion":"7","uid":"u"},` +
				`"status":{"conditions":[{"type":"Finished","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Succeeded","message":""}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			var verb, subresource, patch string
			client := f.Dynamic.(*dynamicfake.FakeDynamicClient)
			client.PrependReactor("*", "workloads", func(action clienttesting.Action) (bool, runtime.Object, error) {
				verb, subresource = action.GetVerb(), action.GetSubresource()
				switch a := action.(type) {
				case clienttesting.PatchAction:
					patch = string(a.GetPatch())
				case clienttesting.CreateAction:
					return true, workload("w", "owner"), nil
				}
				return true, nil, apierrors.NewNotFound(workloads.GroupResource(), "w")
			})
			if err := f.ApplyHold(t.Context(), etl, known, test.plan, now); err != nil {
				t.Errorf("error %v", err)
			}
			diff(t, "verb", test.verb, verb)
			diff(t, "subresource", test.subresource, subresource)
			diff(t, "patch", test.patch, patch)
		})
	}
}

// TestWorkloadDeletedByOthers has another party delete the Workload every second, for five minutes.
func TestWorkloadDeletedByOthers(t *testing.T) {
	sequence := metav1.OwnerReference{APIVersion: "batch.jobset-apiserver.io/v1alpha1", Kind: "SequentialJob", Name: "etl", UID: "etl-1", Controller: ptr.To(true)}
	wanted := &plan.Workload{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: "Workload"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", OwnerReferences: []metav1.OwnerReference{sequence}},
	}
	f := newFixture()
	client := f.Dynamic.Resource(workloads).Namespace("default")
	created, last := 0, error(nil)
	for range 300 {
		f.clock.SetTime(f.clock.Now().Add(time.Second))
		last = f.ApplyHold(t.Context(), etl, nil, plan.HoldPlan{Create: wanted}, metav1.Now())
		if client.Delete(t.Context(), "w", metav1.DeleteOptions{}) == nil {
			created++
		}
	}
	diff(t, "how often the Workload is created in five minutes", 6, created)
	if !children.IsUndone(last) || !strings.Contains(last.Error(), "Workload w was deleted 3 times within a minute") {
		t.Errorf("got %v", last)
	}
}

// A Workload with another owner may have the name. It is not one of our Workloads that the cache does not show yet.
func TestTakenNameIsAnError(t *testing.T) {
	sequence := metav1.OwnerReference{APIVersion: "batch.jobset-apiserver.io/v1alpha1", Kind: "SequentialJob", Name: "etl", UID: "etl-1", Controller: ptr.To(true)}
	wanted := &plan.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", OwnerReferences: []metav1.OwnerReference{sequence}}}
	for owner, taken := range map[string]bool{"etl-1": false, "other": true} {
		f := newFixture(workload("w", owner))
		err := f.ApplyHold(t.Context(), etl, nil, plan.HoldPlan{Create: wanted}, metav1.Now())
		if (err != nil) != taken {
			t.Errorf("creating a Workload whose name one of %s has: %v", owner, err)
		}
	}
}

// A server that does not know the API answers 404 for every path. It does not say that a Workload is gone, and what was
// to be done is still to be done.
func TestAbsentAPISaysNothingAboutAWorkload(t *testing.T) {
	known := &plan.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", UID: "u", ResourceVersion: "7", Finalizers: []string{plan.InUseFinalizer}}}
	page := apierrors.NewGenericServerResponse(404, "patch", workloads.GroupResource(), "w", "404 page not found", 0, true)
	for name, p := range map[string]plan.HoldPlan{
		"unhold": {Unhold: true}, "delete": {Delete: true}, "apply": {Apply: &metav1.Condition{Type: "Finished"}}, "release": {Release: []metav1.Condition{{}}},
	} {
		for gone, answer := range map[bool]error{true: apierrors.NewNotFound(workloads.GroupResource(), "w"), false: page} {
			f := newFixture()
			f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("*", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, answer
			})
			if err := f.ApplyHold(t.Context(), etl, known, p, metav1.Now()); (err == nil) != gone {
				t.Errorf("%s, answered with %v: %v", name, answer, err)
			}
		}
	}
}

// TestWorkloadChangedByOthers makes the same change every second for five minutes, because another party takes it back each time.
func TestWorkloadChangedByOthers(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus) plan.HoldPlan {
		return plan.HoldPlan{Apply: &metav1.Condition{Type: conditionType, Status: status, Reason: "Reason"}}
	}
	evicted := func(at time.Time) plan.HoldPlan {
		return plan.HoldPlan{Release: []metav1.Condition{{Type: plan.ConditionEvicted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}}
	}
	began := time.Unix(1_000_000, 0)
	every := func(p plan.HoldPlan) func(int) plan.HoldPlan { return func(int) plan.HoldPlan { return p } }
	for name, c := range map[string]struct {
		plan   func(second int) plan.HoldPlan
		change func(sequence *metav1.ObjectMeta, workload *plan.Workload, second int)
		want   int
		what   string
	}{
		"the activation":   {plan: every(plan.HoldPlan{Patch: &plan.HoldPatch{Activation: plan.Activate}}), want: 5, what: "spec.active"},
		"the deactivation": {plan: every(plan.HoldPlan{Patch: &plan.HoldPatch{Activation: plan.Deactivate}}), want: 5, what: "spec.active"},
		"all fields": {
			plan: every(plan.HoldPlan{Patch: &plan.HoldPatch{Activation: plan.Activate, QueueName: ptr.To("q"), Priority: ptr.To[int32](1), PodSets: []plan.PodSet{{}}}}),
			want: 5, what: "one of spec.active, spec.podSets, spec.queueName and spec.priority",
		},
		"a condition": {plan: every(condition("PodsReady", metav1.ConditionTrue)), want: 5, what: "the condition PodsReady"},
		"a condition with another reason each time": {
			plan: func(second int) plan.HoldPlan {
				p := condition("PodsReady", metav1.ConditionTrue)
				p.Apply.Reason = []string{"Started", "Recovered"}[second%2]
				return p
			}, want: 5, what: "the condition PodsReady",
		},
		"the release of one eviction": {plan: every(evicted(began)), want: 5, what: "status.admission"},
		"the finalizer":               {plan: every(plan.HoldPlan{Unhold: true}), want: 5, what: "metadata.finalizers"},
		"the deletion": {
			plan: every(plan.HoldPlan{Delete: true}), want: 6,
			change: func(_ *metav1.ObjectMeta, workload *plan.Workload, _ int) { workload.UID += "x" },
		},

		"other pods are ready each time": {plan: func(second int) plan.HoldPlan {
			return condition("PodsReady", []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[second%2])
		}, want: 300},
		"the sequence is suspended and resumed": {plan: func(second int) plan.HoldPlan {
			return plan.HoldPlan{Patch: &plan.HoldPatch{Activation: []plan.Activation{plan.Activate, plan.Deactivate}[second%2]}}
		}, want: 300},
		"an eviction each second": {plan: func(second int) plan.HoldPlan { return evicted(began.Add(time.Duration(second) * time.Second)) }, want: 300},
		"another Workload each time": {
			plan: every(condition("Finished", metav1.ConditionTrue)), want: 300,
			change: func(_ *metav1.ObjectMeta, workload *plan.Workload, _ int) { workload.UID += "x" },
		},
		"another generation each time": {
			plan: every(condition("Finished", metav1.ConditionTrue)), want: 300,
			change: func(sequence *metav1.ObjectMeta, _ *plan.Workload, second int) { sequence.Generation = int64(second) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, made, last := newFixture(), 0, error(nil)
			sequence, known := etl, &plan.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", UID: "u", ResourceVersion: "7"}}
			if c.change != nil {
				sequence = &metav1.ObjectMeta{Namespace: "default", Name: "etl", UID: "etl-1"}
			}
			f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("*", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
				made++
				return true, workload("w", "owner"), nil
			})
			for second := range 300 {
				if c.change != nil {
					c.change(sequence, known, second)
				}
				last = f.ApplyHold(t.Context(), sequence, known, c.plan(second), metav1.NewTime(f.clock.Now()))
				f.clock.SetTime(f.clock.Now().Add(time.Second))
			}
			diff(t, "how often the Workload is written in five minutes", c.want, made)
			if children.IsUndone(last) != (c.want < 300) {
				t.Errorf("the error of the last write: %v", last)
			}
			if message := "another party removed or changed " + c.what + " of Workload w 3 times within a minute"; c.what != "" && !strings.Contains(last.Error(), message) {
				t.Errorf("got %q, want %q", last, message)
			}
		})
	}
}

// TestWorkloadMadeUselessByOthers replaces the Workload every second for five minutes, because another party changes it each time so that
// it is of no use.
func TestWorkloadMadeUselessByOthers(t *testing.T) {
	useless := func(conditions ...metav1.Condition) *plan.Workload {
		return &plan.Workload{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", ResourceVersion: "7"},
			Status:     plan.WorkloadStatus{Conditions: conditions},
		}
	}
	finished := metav1.Condition{Type: plan.ConditionFinished, Status: metav1.ConditionTrue}
	for name, c := range map[string]struct {
		workload   *plan.Workload
		ends       bool
		generation int64
		want       int
		what       string
	}{
		"it is finished":                     {workload: useless(finished), want: 5, what: "the condition Finished"},
		"its pods are other ones":            {workload: useless(), want: 5, what: "spec.podSets"},
		"the controller itself finishes it":  {workload: useless(finished), ends: true, want: 300},
		"it is for another generation again": {workload: useless(), generation: 1, want: 300},
	} {
		t.Run(name, func(t *testing.T) {
			f, replaced := newFixture(), 0
			f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("*", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, workload("w", "owner"), nil
			})
			sequence := &metav1.ObjectMeta{Namespace: "default", Name: "etl", UID: "etl-1"}
			do := func(known *plan.Workload, p plan.HoldPlan) error {
				return f.ApplyHold(t.Context(), sequence, known, p, metav1.NewTime(f.clock.Now()))
			}
			var last error
			for second := range 300 {
				sequence.Generation += c.generation
				c.workload.UID = types.UID(strconv.Itoa(second))
				if c.ends {
					if err := do(c.workload, plan.HoldPlan{Apply: &finished}); err != nil {
						t.Fatal(err)
					}
				}
				if last = do(c.workload, plan.HoldPlan{Delete: true}); last == nil {
					replaced++
					last = do(nil, plan.HoldPlan{Create: useless()})
				}
				f.clock.SetTime(f.clock.Now().Add(time.Second))
			}
			diff(t, "how often the Workload is replaced in five minutes", c.want, replaced)
			if children.IsUndone(last) != (c.want < 300) {
				t.Errorf("the error of the last write: %v", last)
			}
			message := "another party removed or changed " + c.what + " of Workload w 3 times within a minute"
			if c.what != "" && !strings.Contains(last.Error(), message) {
				t.Errorf("got %q, want %q", last, message)
			}
		})
	}
}
