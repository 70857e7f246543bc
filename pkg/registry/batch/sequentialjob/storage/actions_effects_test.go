// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
)

func lastAction(action batch.SequentialJobAction, step string, attempt int32) *batch.SequentialJobLastAction {
	return &batch.SequentialJobLastAction{Action: action, User: "alice", Reason: "because", Time: stored, Step: step, Attempt: attempt}
}

// TestEffects compares the whole object after each action with what it was.
func TestEffects(t *testing.T) {
	spec := &batch.SequentialJobActionSpec{Reason: "because"}
	cases := map[string]struct {
		state  string
		act    func(*batch.SequentialJob) (*batch.SequentialJobActionStatus, error)
		change func(*batch.SequentialJob)
	}{
		"restart": {
			state: "running",
			act: func(sj *batch.SequentialJob) (*batch.SequentialJobActionStatus, error) {
				sj.Spec.Steps[1].Name, sj.Spec.Steps[1].JobSet = "tune", nil // it runs again as the spec is now
				return actions.Restart(sj, spec, call())
			},
			change: func(sj *batch.SequentialJob) {
				sj.Spec.Steps[1].Name, sj.Spec.Steps[1].JobSet = "tune", nil
				sj.Status.Steps[1] = batch.SequentialJobStepStatus{
					Name: "tune", Kind: batch.StepKindJob, ChildName: "nightly-1", State: batch.StepStarting, StartTime: second, Attempts: 3,
				}
				sj.Status.LastAction = lastAction(batch.ActionRestart, "tune", 3)
			},
		},
		"suspend": {
			state: "running",
			act: func(sj *batch.SequentialJob) (*batch.SequentialJobActionStatus, error) {
				return actions.Suspend(sj, spec, call())
			},
			change: func(sj *batch.SequentialJob) {
				sj.Spec.Suspend, sj.Status.LastAction = ptr.To(true), lastAction(batch.ActionSuspend, "train", 2)
			},
		},
		"resume": {
			state: "suspended",
			act: func(sj *batch.SequentialJob) (*batch.SequentialJobActionStatus, error) {
				return actions.Resume(sj, spec, call())
			},
			change: func(sj *batch.SequentialJob) {
				sj.Spec.Suspend, sj.Status.LastAction = ptr.To(false), lastAction(batch.ActionResume, "train", 2)
			},
		},
		"cancel": {
			state: "running",
			act: func(sj *batch.SequentialJob) (*batch.SequentialJobActionStatus, error) {
				return actions.Cancel(sj, spec, call())
			},
			change: func(sj *batch.SequentialJob) {
				sj.Status.Conditions = []metav1.Condition{{
					Type: "Failed", Status: metav1.ConditionTrue, Reason: "Cancelled", Message: "cancelled by alice: because", LastTransitionTime: *second, ObservedGeneration: 3,
				}}
				sj.Status.CompletionTime, sj.Status.ActiveSince, sj.Status.ActiveSeconds = second, nil, 60+30*60
				sj.Status.LastAction = lastAction(batch.ActionCancel, "train", 2)
			},
		},
		"retry": {
			state: "failed",
			act: func(sj *batch.SequentialJob) (*batch.SequentialJobActionStatus, error) {
				return actions.Retry(sj, &batch.SequentialJobRetrySpec{Reason: "because"}, call())
			},
			change: func(sj *batch.SequentialJob) {
				unfinished(sj)
				sj.Status.Steps[1] = batch.SequentialJobStepStatus{
					Name: "train", Kind: batch.StepKindJobSet, ChildName: "nightly-1", State: batch.StepStarting, StartTime: second, Attempts: 3,
				}
				sj.Status.LastAction = lastAction(batch.ActionRetry, "train", 3)
			},
		},
		"retry from an earlier step": {
			state: "failed",
			act: func(sj *batch.SequentialJob) (*batch.SequentialJobActionStatus, error) {
				return actions.Retry(sj, &batch.SequentialJobRetrySpec{Reason: "because", FromStep: "prepare"}, call())
			},
			change: func(sj *batch.SequentialJob) {
				unfinished(sj)
				sj.Status.Progress = batch.SequentialJobProgress{CurrentIndex: ptr.To[int32](0), CompletedIndices: []int32{}}
				sj.Status.State = batch.SequentialJobState{}
				sj.Status.Steps = []batch.SequentialJobStepStatus{
					{Name: "prepare", Kind: batch.StepKindJob, ChildName: "nightly-0", State: batch.StepStarting, StartTime: second, Attempts: 2},
					{Name: "train", Kind: batch.StepKindJobSet, ChildName: "nightly-1", State: batch.StepPending, Attempts: 2},
				}
				sj.Status.LastAction = lastAction(batch.ActionRetry, "prepare", 2)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sj := nightly(states[tc.state])
			want := sj.DeepCopy()
			tc.change(want)
			answer, err := tc.act(sj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, sj); diff != "" {
				t.Errorf("the sequence (-want +got):\n%s", diff)
			}
			last := sj.Status.LastAction
			wantAnswer := &batch.SequentialJobActionStatus{
				UID: "uid-1", Step: last.Step, Attempt: last.Attempt, User: "alice", Time: stored, Message: answer.Message,
			}
			if diff := cmp.Diff(wantAnswer, answer); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
		})
	}
}

// unfinished takes back that a sequence failed, as a retry does.
func unfinished(sj *batch.SequentialJob) {
	for i := range sj.Status.Conditions {
		c := &sj.Status.Conditions[i]
		*c = metav1.Condition{
			Type: c.Type, Status: metav1.ConditionFalse, Reason: "Retried", Message: "retried by alice: because", LastTransitionTime: *second, ObservedGeneration: 3,
		}
		if c.Type == "Available" {
			c.Status = metav1.ConditionTrue
		}
	}
	sj.Status.Progress.FailedIndex, sj.Status.Progress.FailureReason = nil, ""
	sj.Status.State = batch.SequentialJobState{Succeeded: 1}
	sj.Status.CompletionTime, sj.Status.ActiveSeconds, sj.Status.ActiveSince = nil, 0, nil
}

func TestRetryFromSteps(t *testing.T) {
	const invalid = `SequentialJobRetry.batch.jobset-apiserver.io "nightly" is invalid: spec.fromStep: `
	shortened := func(sj *batch.SequentialJob) { failed(sj); sj.Spec.Steps = sj.Spec.Steps[:1] }
	cases := map[string]struct {
		state    func(*batch.SequentialJob)
		from     string
		wantFrom int32
		want     string
	}{
		"the one that failed":                        {state: failed, from: "train", wantFrom: 1},
		"an earlier one":                             {state: failed, from: "prepare", wantFrom: 0},
		"an unknown one":                             {state: failed, from: "deploy", want: `Invalid value: "deploy": must be the name of a step of the SequentialJob: prepare, train, evaluate`},
		"a later one":                                {state: failed, from: "evaluate", want: `Invalid value: "evaluate": must be the step that failed, train, or one before it`},
		"one that was removed":                       {state: shortened, want: "Required value: must name the step from which to run again, since the one that failed was removed: prepare"},
		"before one was removed":                     {state: shortened, from: "prepare", wantFrom: 0},
		"the one that completed as it was cancelled": {state: completedLate, wantFrom: 2},
		"before it":                                  {state: completedLate, from: "train", wantFrom: 1},
		"the last one completed": {state: func(sj *batch.SequentialJob) { completedLate(sj); sj.Spec.Steps = sj.Spec.Steps[:2] },
			want: "Required value: must name the step from which to run again, since the last one has completed: prepare, train"},
		"cancelled between two": {state: func(sj *batch.SequentialJob) { between(sj); cancelled(sj) }, from: "train", wantFrom: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sj := nightly(tc.state)
			before := sj.DeepCopy()
			_, err := retryFrom(tc.from)(sj, nil, call())
			if tc.want != "" {
				if diff := cmp.Diff(invalid+tc.want, text(err)); diff != "" || !apierrors.IsInvalid(err) {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(before, sj); diff != "" {
					t.Errorf("a refused request changed the sequence (-before +after):\n%s", diff)
				}
				return
			}
			if err != nil || *sj.Status.Progress.CurrentIndex != tc.wantFrom || len(sj.Status.Progress.CompletedIndices) != int(tc.wantFrom) {
				t.Errorf("error %v, progress %+v", err, sj.Status.Progress)
			}
		})
	}
}

// completedLate is a sequence that was cancelled when its second step had completed, which the controller saw afterwards.
func completedLate(sj *batch.SequentialJob) {
	cancelled(sj)
	sj.Status.Progress.CompletedIndices, step(sj).State = []int32{0, 1}, batch.StepSucceeded
}

// TestRetryBetweenSteps: a step that had never started has no attempt to end, and is started as usual.
func TestRetryBetweenSteps(t *testing.T) {
	sj := nightly(func(sj *batch.SequentialJob) { between(sj); cancelled(sj) })
	before := sj.DeepCopy()
	answer, err := retryFrom("")(sj, nil, call())
	if err != nil || answer.Attempt != 0 || answer.Step != "evaluate" {
		t.Errorf("%v, %+v", err, answer)
	}
	if diff := cmp.Diff(before.Status.Steps, sj.Status.Steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestRecordEdit(t *testing.T) {
	cases := map[string]struct {
		state   string
		suspend bool
		user    string
		want    *batch.SequentialJobLastAction
	}{
		"suspended":                       {state: "running", suspend: true, user: "eve", want: &batch.SequentialJobLastAction{Action: batch.ActionSuspend, User: "eve", Time: stored, Step: "train", Attempt: 2}},
		"resumed":                         {state: "suspended", user: "eve", want: &batch.SequentialJobLastAction{Action: batch.ActionResume, User: "eve", Time: stored, Step: "train", Attempt: 2}},
		"suspended before the start":      {state: "pending", suspend: true, user: "eve", want: &batch.SequentialJobLastAction{Action: batch.ActionSuspend, User: "eve", Time: stored}},
		"suspended by an unknown user":    {state: "running", suspend: true},
		"not changed":                     {state: "running", user: "eve"},
		"suspended after it failed":       {state: "failed", suspend: true, user: "eve"},
		"suspended by another controller": {state: "foreign", suspend: true, user: "eve"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prev := nightly(states[tc.state])
			next := prev.DeepCopy()
			next.Spec.Suspend, next.Status = &tc.suspend, prev.Status
			untouched := prev.DeepCopy()
			actions.RecordEdit(next, prev, actions.Call{User: tc.user, Now: now})
			if diff := cmp.Diff(tc.want, next.Status.LastAction); diff != "" {
				t.Errorf("last action (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(untouched, prev); diff != "" {
				t.Errorf("the previous sequence changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsersAreBounded(t *testing.T) {
	sj := nightly()
	long := strings.Repeat("a", 300)
	if _, err := actions.Cancel(sj, &batch.SequentialJobActionSpec{}, actions.Call{User: long, Now: now}); err != nil {
		t.Fatal(err)
	}
	if got := sj.Status.LastAction.User; got != long[:256] {
		t.Errorf("the user has %d bytes", len(got))
	}
}

// TestCancelledByOthers: another client may have written the status.
func TestCancelledByOthers(t *testing.T) {
	sj := nightly(states["cancelled"])
	sj.Status.LastAction = nil
	answer, err := all["cancel"](sj, nil, call())
	if err != nil || answer.User != "bob" || answer.Time == nil {
		t.Errorf("%v, %+v", err, answer)
	}
}
