// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// conditionOf is a condition that an action sets.
func conditionOf(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: second, ObservedGeneration: 3}
}

func TestSuspend(t *testing.T) {
	js := train()
	want := js.DeepCopy()
	want.Spec.Suspend = ptr.To(true)
	want.Status.ReadyMilliseconds = readyBefore
	first := &want.Status.Attempts[0]
	first.EndTime, first.Outcome, first.EndUser, first.EndReason = stored, jobset.OutcomeSuspended, "alice", "night"
	answer, err := actions.Suspend(js, &batch.JobSetActionSpec{Reason: "night"}, call())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, js); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
	wantAnswer := &batch.JobSetActionStatus{UID: "uid-1", Attempt: 1, User: "alice", Time: stored, Message: "the JobSet was suspended, which ended attempt 1"}
	if diff := cmp.Diff(wantAnswer, answer); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
}

func TestResume(t *testing.T) {
	next := jobset.Attempt{Number: 2, Trigger: jobset.TriggerResume, Scope: jobset.ScopeJobSet, User: "alice", Reason: "day", RequestTime: stored}
	cases := map[string]struct {
		change func(*jobset.JobSet)
		first  func(*jobset.Attempt)
		ready  int64
	}{
		"a set that the controller suspended": {change: suspended, first: func(a *jobset.Attempt) {}, ready: 600_000},
		"a set whose suspension nobody noted yet": {
			change: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) },
			first:  func(a *jobset.Attempt) { a.EndTime, a.Outcome = stored, jobset.OutcomeSuspended },
			ready:  readyBefore,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train(tc.change)
			want := js.DeepCopy()
			want.Spec.Suspend = ptr.To(false)
			tc.first(&want.Status.Attempts[0])
			want.Status.ReadyMilliseconds, want.Status.Attempts = tc.ready, append(want.Status.Attempts, next)
			if _, err := actions.Resume(js, &batch.JobSetActionSpec{Reason: "day"}, call()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, js); diff != "" {
				t.Errorf("the set (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	message := "cancelled by alice: wrong data"
	restarting := metav1.Condition{
		Type: jobset.ConditionRestarting, Status: metav1.ConditionTrue, Reason: "DefaultFailurePolicy", LastTransitionTime: metav1.NewTime(begin),
	}
	cases := map[string]struct {
		change     func(*jobset.JobSet)
		conditions []metav1.Condition
		user, text string
		attempt    int32
	}{
		"a running set": {
			change: states["running"], attempt: 1, text: "the JobSet was cancelled, which ended attempt 1",
			conditions: []metav1.Condition{conditionOf("Failed", metav1.ConditionTrue, "Cancelled", message)},
		},
		"a restarting set, a Job of which waits for its name": {
			change: func(js *jobset.JobSet) {
				conflict := restarting
				conflict.Type, conflict.Reason = jobset.ConditionNameConflict, "NameConflict"
				refused, unschedulable := restarting, restarting
				refused.Type, refused.Reason = jobset.ConditionCreationFailure, "QuotaExceeded"
				unschedulable.Type, unschedulable.Reason = jobset.ConditionUnschedulable, "Unschedulable"
				js.Status.Conditions = []metav1.Condition{restarting, conflict, refused, unschedulable}
			}, attempt: 1, text: "the JobSet was cancelled, which ended attempt 1",
			conditions: []metav1.Condition{
				conditionOf(jobset.ConditionRestarting, metav1.ConditionFalse, "JobSetFailed", "jobset failed"),
				conditionOf(jobset.ConditionNameConflict, metav1.ConditionFalse, "JobNamesFree", "the names of all jobs of the jobset are available"),
				conditionOf(jobset.ConditionCreationFailure, metav1.ConditionFalse, "JobSetFailed", "jobset failed"),
				conditionOf(jobset.ConditionUnschedulable, metav1.ConditionFalse, "JobSetFailed", "jobset failed"),
				conditionOf("Failed", metav1.ConditionTrue, "Cancelled", message),
			},
		},
		"a set that was never seen": {
			change: unseen, text: "the JobSet was cancelled while no attempt was running",
			conditions: []metav1.Condition{conditionOf("Failed", metav1.ConditionTrue, "Cancelled", message)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train(tc.change)
			answer, err := actions.Cancel(js, &batch.JobSetActionSpec{Reason: "wrong data"}, call())
			if err != nil {
				t.Fatal(err)
			}
			when := stored
			if tc.attempt == 0 {
				when = &metav1.MicroTime{Time: second.Time}
			}
			want := &batch.JobSetActionStatus{UID: "uid-1", Attempt: tc.attempt, User: "alice", Time: when, Message: tc.text}
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.conditions, js.Status.Conditions); diff != "" || js.Status.TerminalState != "Failed" {
				t.Errorf("terminal state %q, conditions (-want +got):\n%s", js.Status.TerminalState, diff)
			}
			if tc.attempt == 0 {
				return
			}
			last := js.Status.Attempts[0]
			if last.Outcome != jobset.OutcomeCancelled || last.EndUser != "alice" || last.EndReason != "wrong data" || js.Status.ReadyMilliseconds != readyBefore {
				t.Errorf("the attempt is %+v", last)
			}
		})
	}
}

func TestRetry(t *testing.T) {
	js := train(failed, func(js *jobset.JobSet) {
		js.Status.Restarts, js.Status.RestartsCountTowardsMax, js.Status.AddedRestarts = 2, 2, 1
		js.Status.StartTime, js.Status.ExecutionAttempts = ptr.To(metav1.NewTime(begin)), ptr.To[int32](7)
	})
	want := js.DeepCopy()
	s := &want.Status
	s.TerminalState, s.Restarts, s.AddedRestarts, s.StartTime, s.ExecutionAttempts = "", 3, 6, &second, ptr.To[int32](8)
	s.Conditions = []metav1.Condition{
		conditionOf(jobset.ConditionRestarting, metav1.ConditionTrue, "RetryRequested", "retry requested by alice: new image"),
	}
	s.Attempts = append(s.Attempts, jobset.Attempt{
		Number: 2, Trigger: jobset.TriggerRetry, Scope: jobset.ScopeJobSet, User: "alice", Reason: "new image", RequestTime: stored,
	})
	c := call(func(c *actions.Call) {
		c.Gates.JobSetActiveDeadlineSeconds, c.Gates.ExecutionAttemptsTracking = true, true
	})
	answer, err := actions.Retry(js, &batch.JobSetRetrySpec{Reason: "new image", MaxRestarts: 5}, c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, js); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
	wantAnswer := &batch.JobSetActionStatus{UID: "uid-1", Attempt: 2, User: "alice", Time: stored, Message: "the JobSet was retried as attempt 2"}
	if diff := cmp.Diff(wantAnswer, answer); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
}

// TestRetrySuspended: the set has failed no more; its execution and its attempt begin when it is resumed.
func TestRetrySuspended(t *testing.T) {
	js := train(states["suspended failed"], func(js *jobset.JobSet) {
		js.Status.StartTime, js.Status.ExecutionAttempts = ptr.To(metav1.NewTime(begin)), ptr.To[int32](7)
	})
	want := js.DeepCopy()
	want.Status.TerminalState, want.Status.Restarts, want.Status.StartTime = "", 1, nil
	want.Status.Conditions = []metav1.Condition{conditionOf("Retried", metav1.ConditionTrue, "Retried", "retried by alice")}
	c := call(func(c *actions.Call) {
		c.Gates.JobSetActiveDeadlineSeconds, c.Gates.ExecutionAttemptsTracking = true, true
	})
	if _, err := actions.Retry(js, &batch.JobSetRetrySpec{}, c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, js); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
	answer, err := actions.Resume(js, &batch.JobSetActionSpec{}, c)
	if err != nil || answer.Attempt != 2 {
		t.Errorf("resuming it: %v, %+v", err, answer)
	}
}

func TestRetryRestarts(t *testing.T) {
	bare := train(failed, func(js *jobset.JobSet) { js.Spec.FailurePolicy = nil })
	before := bare.DeepCopy()
	_, err := actions.Retry(bare, &batch.JobSetRetrySpec{MaxRestarts: 1}, call())
	const want = `JobSetRetry.batch.jobset-apiserver.io "train" is invalid: spec.maxRestarts: Invalid value: 1: must be 0: the JobSet has no failure policy`
	if diff := cmp.Diff(want, text(err)); diff != "" || !apierrors.IsInvalid(err) {
		t.Errorf("without a policy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, bare); diff != "" {
		t.Errorf("a refused request changed the set (-before +after):\n%s", diff)
	}
	if _, err := actions.Retry(bare, &batch.JobSetRetrySpec{}, call()); err != nil {
		t.Errorf("without more restarts: %v", err)
	}
	rich := train(failed, func(js *jobset.JobSet) { js.Status.AddedRestarts = math.MaxInt32 - 1 })
	if _, err := actions.Retry(rich, &batch.JobSetRetrySpec{MaxRestarts: 9}, call()); err != nil || rich.Status.AddedRestarts != math.MaxInt32 {
		t.Errorf("more restarts than can be counted: %v, %d", err, rich.Status.AddedRestarts)
	}
}

// TestSigners distinguishes names that contain the separator of names and reasons from reasons.
func TestSigners(t *testing.T) {
	for _, user := range []string{"alice", "system:serviceaccount:ns:robot", "alice@example.com", "by the way", strings.Repeat("a", 256)} {
		for _, reason := range []string{"", "because", "see: this", "cancelled by mistake"} {
			js := train(suspended)
			first, err := actions.Cancel(js, &batch.JobSetActionSpec{Reason: reason}, call(func(c *actions.Call) { c.User = user }))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(user, first.User); diff != "" {
				t.Errorf("of %q because of %q (-want +got):\n%s", user, reason, diff)
			}
		}
	}
}
