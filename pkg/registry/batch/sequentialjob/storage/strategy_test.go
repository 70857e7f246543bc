// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob"
)

// running is a sequence of which the first step has completed and the second one runs.
func running(t *testing.T, strategy string) *batch.SequentialJob {
	t.Helper()
	sj := etl(t, "{containers: [{name: a, image: a}, {name: b, image: b}, {name: c, image: c}], template: {spec: {nodeSelector: {a: b}}}, updateStrategy: {type: "+strategy+"}}")
	sj.Generation = 4
	sj.Status = batch.SequentialJobStatus{
		Phase: batch.PhaseRunning, StepsGeneration: 1, ObservedGeneration: 4, State: batch.SequentialJobState{Active: 1, Succeeded: 1},
		Progress: batch.SequentialJobProgress{CurrentIndex: ptr.To[int32](1), CompletedIndices: []int32{0}},
		Steps: []batch.SequentialJobStepStatus{
			{Name: "a", Kind: batch.StepKindJob, ChildName: "etl-0", ChildUID: "u0", State: batch.StepSucceeded, Attempts: 1},
			{Name: "b", Kind: batch.StepKindJob, ChildName: "etl-1", ChildUID: "u1", State: batch.StepRunning, Attempts: 2, Reason: "x"},
		},
	}
	return sj
}

func TestPrepareForCreate(t *testing.T) {
	for phase, suspend := range map[batch.SequentialJobPhase]*bool{batch.PhasePending: nil, batch.PhaseSuspended: ptr.To(true)} {
		sj := running(t, "Continue")
		sj.Spec.Suspend = suspend
		newStrategy().PrepareForCreate(t.Context(), sj)
		want := batch.SequentialJobStatus{Phase: phase, StepsGeneration: 1}
		if diff := cmp.Diff(want, sj.Status); diff != "" || sj.Generation != 1 {
			t.Errorf("generation %d, status (-want +got):\n%s", sj.Generation, diff)
		}
	}
}

// What a change of the spec does to the generations, to the step that runs, and to the phase.
func TestPrepareForUpdate(t *testing.T) {
	type outcome struct {
		Generation, StepsGeneration int64
		Attempts                    int32
		State                       batch.StepState
		Phase                       batch.SequentialJobPhase
	}
	untouched := outcome{Generation: 4, StepsGeneration: 1, Attempts: 2, State: batch.StepRunning, Phase: batch.PhaseRunning}
	other, steps, again := untouched, untouched, untouched
	other.Generation = 5
	steps.Generation, steps.StepsGeneration = 5, 5
	again.Generation, again.StepsGeneration, again.Attempts, again.State = 5, 5, 3, batch.StepStarting
	suspended := other
	suspended.Phase = batch.PhaseSuspended
	image := func(i int) func(*batch.SequentialJob) {
		return func(sj *batch.SequentialJob) { sj.Spec.Containers[i].Image = "new" }
	}
	failed := func(sj *batch.SequentialJob) {
		sj.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: "Cancelled"}}
	}
	cases := map[string]struct {
		stored, change func(*batch.SequentialJob)
		want           outcome
		wantRestart    *outcome // with the strategy Restart, if it is another
	}{
		"a label":                 {change: func(sj *batch.SequentialJob) { sj.Labels = map[string]string{"a": "b"} }, want: untouched},
		"a status":                {change: func(sj *batch.SequentialJob) { sj.Status = batch.SequentialJobStatus{} }, want: untouched},
		"suspension":              {change: func(sj *batch.SequentialJob) { sj.Spec.Suspend = ptr.To(true) }, want: suspended},
		"a deadline":              {change: func(sj *batch.SequentialJob) { sj.Spec.ActiveDeadlineSeconds = ptr.To[int64](5) }, want: other},
		"the step that runs":      {change: image(1), want: steps, wantRestart: &again},
		"a step that has not run": {change: image(2), want: steps},
		"a step that is added":    {change: func(sj *batch.SequentialJob) { sj.Spec.Containers = append(sj.Spec.Containers, sj.Spec.Containers[0]) }, want: steps},
		"what containers share":   {change: func(sj *batch.SequentialJob) { sj.Spec.Template.Spec.NodeSelector["a"] = "c" }, want: steps, wantRestart: &again},
		"the retries":             {change: func(sj *batch.SequentialJob) { sj.Spec.BackoffLimit = ptr.To[int32](1) }, want: steps, wantRestart: &again},
		"a step that has ended":   {stored: func(sj *batch.SequentialJob) { sj.Status.Progress.CurrentIndex = ptr.To[int32](2) }, change: image(1), want: steps},
		"a sequence that is being deleted": {
			stored: func(sj *batch.SequentialJob) { sj.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }, change: image(1), want: steps,
		},
		"a sequence that has failed": {
			stored: failed, change: image(1), want: outcome{Generation: 5, StepsGeneration: 5, Attempts: 2, State: batch.StepRunning, Phase: batch.PhaseFailed},
		},
	}
	for name, tc := range cases {
		for _, strategy := range []string{"Continue", "Restart"} {
			t.Run(name+"/"+strategy, func(t *testing.T) {
				prev := running(t, strategy)
				if tc.stored != nil {
					tc.stored(prev)
				}
				next, stored := prev.DeepCopy(), prev.DeepCopy()
				tc.change(next)
				newStrategy().PrepareForUpdate(t.Context(), next, prev)
				want := tc.want
				if strategy == "Restart" && tc.wantRestart != nil {
					want = *tc.wantRestart
				}
				step := next.Status.Steps[1]
				got := outcome{next.Generation, next.Status.StepsGeneration, step.Attempts, step.State, next.Status.Phase}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
				if step.State == batch.StepStarting && (step.ChildUID != "" || step.Reason != "" || step.ChildName != "etl-1") {
					t.Errorf("the new attempt has results of the old one: %+v", step)
				}
				if diff := cmp.Diff(stored, prev); diff != "" {
					t.Errorf("the stored object was changed:\n%s", diff)
				}
			})
		}
	}
}

// The controller writes the status, but not what the server alone knows.
func TestStatusStrategyKeepsWhatTheServerWrites(t *testing.T) {
	prev := running(t, "Continue")
	prev.Status.LastAction = &batch.SequentialJobLastAction{Action: batch.ActionResume, User: "alice"}
	next := prev.DeepCopy()
	next.Labels, next.Spec.Containers = map[string]string{"a": "b"}, nil
	next.Status.Phase, next.Status.StepsGeneration, next.Status.LastAction = batch.PhaseCompleted, 9, nil
	next.Status.Steps[1].State = batch.StepWaiting
	sequentialjob.NewStatusStrategy(newStrategy()).PrepareForUpdate(t.Context(), next, prev)
	want := prev.DeepCopy()
	want.Status.Steps[1].State, want.Status.Phase = batch.StepWaiting, batch.PhaseWaiting
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

// An action changes the suspension and the status, and nothing else.
func TestActionStrategy(t *testing.T) {
	prev := running(t, "Continue")
	next := prev.DeepCopy()
	next.Labels, next.Spec.Containers = map[string]string{"a": "b"}, nil
	next.Spec.Suspend = ptr.To(true)
	next.Status.LastAction = &batch.SequentialJobLastAction{Action: batch.ActionSuspend}
	sequentialjob.NewActionStrategy(newStrategy()).PrepareForUpdate(t.Context(), next, prev)
	want := prev.DeepCopy()
	want.Spec.Suspend, want.Generation, want.Status.LastAction, want.Status.Phase = ptr.To(true), 5, next.Status.LastAction, batch.PhaseSuspended
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}
