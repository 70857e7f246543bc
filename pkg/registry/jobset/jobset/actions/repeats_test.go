// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// by calls an action as the user, so many minutes after now, without preconditions.
func by(user, name string, minutes int) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		if _, err := all[name](js, nil, later(user, minutes)); err != nil {
			panic(err)
		}
	}
}

func later(user string, minutes int) actions.Call {
	return call(func(c *actions.Call) { c.User, c.Now = user, now.Add(time.Duration(minutes)*time.Minute) })
}

// ready makes the running attempt ready.
func ready(js *jobset.JobSet) {
	current := actions.Current(&js.Status)
	current.CreateTime, current.ReadyTime = current.RequestTime.DeepCopy(), current.RequestTime.DeepCopy()
}

// finishes is what the controller makes of a set that finishes in its current attempt.
func finishes(condition string, outcome jobset.AttemptOutcome) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		js.Status.TerminalState = condition
		js.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "SomeReason"}}
		current := actions.Current(&js.Status)
		current.EndTime, current.Outcome = current.RequestTime.DeepCopy(), outcome
	}
}

// TestRepeats sends the same request for attempt 1 a second time, ten minutes after the first, and after what happened in the
// meantime. It is answered as the first one while what was asked for is still so, and refused otherwise.
func TestRepeats(t *testing.T) {
	completes := finishes(jobset.ConditionCompleted, jobset.OutcomeCompleted)
	fails := finishes(jobset.ConditionFailed, jobset.OutcomeFailed)
	edited := func(suspend bool) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) { js.Spec.Suspend = &suspend }
	}
	deleted := func(js *jobset.JobSet) { js.DeletionTimestamp = ptr.To(metav1.NewTime(begin)) }
	cases := map[string]struct {
		action, state string
		then          []func(*jobset.JobSet)
		want          string // empty for the first answer
	}{
		"restart, ready since":     {action: "restart", then: []func(*jobset.JobSet){ready}},
		"restart, completed since": {action: "restart", then: []func(*jobset.JobSet){completes}},
		"restart, failed since":    {action: "restart", then: []func(*jobset.JobSet){fails}},
		"restart, restarted since": {action: "restart", then: []func(*jobset.JobSet){ready, by("bob", "restart", 3)},
			want: "attempt 1 was restarted 10m ago by alice; attempt 3 is running"},
		"restart, retried since": {action: "restart", then: []func(*jobset.JobSet){fails, by("bob", "retry", 3)},
			want: "attempt 1 was restarted 10m ago by alice; attempt 3 is running"},
		"restart, suspended since": {action: "restart", then: []func(*jobset.JobSet){by("bob", "suspend", 3)},
			want: "attempt 1 was restarted 10m ago by alice; attempt 2 was suspended 7m ago by bob"},
		"restart, suspended by an edit since": {action: "restart", then: []func(*jobset.JobSet){edited(true)},
			want: "attempt 1 was restarted 10m ago by alice; attempt 2 is suspended"},
		"restart, cancelled since": {action: "restart", then: []func(*jobset.JobSet){by("bob", "cancel", 3)},
			want: "attempt 1 was restarted 10m ago by alice; attempt 2 was cancelled 7m ago by bob"},
		"restart, restarted and completed since": {action: "restart", then: []func(*jobset.JobSet){ready, by("bob", "restart", 3), completes},
			want: "attempt 1 was restarted 10m ago by alice; attempt 3 has completed"},
		"restart, restarted and failed since": {action: "restart", then: []func(*jobset.JobSet){ready, by("bob", "restart", 3), fails},
			want: "attempt 1 was restarted 10m ago by alice; attempt 3 has failed"},
		"restart, deleted since": {action: "restart", then: []func(*jobset.JobSet){deleted},
			want: "the JobSet is being deleted; recreate it after it is gone"},

		"suspend": {action: "suspend"},
		"suspend, resumed since": {action: "suspend", then: []func(*jobset.JobSet){by("bob", "resume", 3)},
			want: "attempt 1 was suspended 10m ago by alice; attempt 2 is running"},
		"suspend, resumed and restarted since": {action: "suspend", then: []func(*jobset.JobSet){by("bob", "resume", 3), ready, by("bob", "restart", 4)},
			want: "attempt 1 was suspended 10m ago by alice; attempt 3 is running"},
		"suspend, resumed by an edit since": {action: "suspend", then: []func(*jobset.JobSet){edited(false)},
			want: "attempt 1 was suspended 10m ago by alice; the JobSet was resumed since then"},
		"suspend, resumed and suspended again since": {action: "suspend", then: []func(*jobset.JobSet){by("bob", "resume", 3), by("eve", "suspend", 4)},
			want: "attempt 1 was suspended 10m ago by alice; attempt 2 was suspended 6m ago by eve"},
		"suspend, cancelled since": {action: "suspend", then: []func(*jobset.JobSet){by("bob", "cancel", 3)},
			want: "the JobSet has failed; there is nothing to suspend; retry it instead"},
		"suspend, deleted since": {action: "suspend", then: []func(*jobset.JobSet){deleted},
			want: "the JobSet is being deleted; recreate it after it is gone"},

		"resume":                  {action: "resume", state: "suspended"},
		"resume, completed since": {action: "resume", state: "suspended", then: []func(*jobset.JobSet){completes}},
		"resume, suspended since": {action: "resume", state: "suspended", then: []func(*jobset.JobSet){by("bob", "suspend", 3)},
			want: "attempt 1 was resumed 10m ago by alice; attempt 2 was suspended 7m ago by bob"},
		"resume, restarted since": {action: "resume", state: "suspended", then: []func(*jobset.JobSet){by("bob", "restart", 3)},
			want: "attempt 1 was resumed 10m ago by alice; attempt 3 is running"},

		"retry":               {action: "retry", state: "failed"},
		"retry, failed again": {action: "retry", state: "failed", then: []func(*jobset.JobSet){fails}},
		"retry, failed and retried since": {action: "retry", state: "failed", then: []func(*jobset.JobSet){fails, by("bob", "retry", 3)},
			want: "attempt 1 was retried 10m ago by alice; attempt 3 is running"},
		"retry, cancelled since": {action: "retry", state: "failed", then: []func(*jobset.JobSet){by("bob", "cancel", 3)},
			want: "attempt 1 was retried 10m ago by alice; attempt 2 was cancelled 7m ago by bob"},
		"retry of what stays suspended": {action: "retry", state: "suspended failed"},
		"retry of what stays suspended, resumed since": {action: "retry", state: "suspended failed", then: []func(*jobset.JobSet){by("bob", "resume", 3)},
			want: "preconditions.attempt is 1, but attempt 2 is current (begun when the JobSet was resumed by bob)"},

		"cancel":                {action: "cancel"},
		"cancel, deleted since": {action: "cancel", then: []func(*jobset.JobSet){deleted}},
		"cancel, retried since": {action: "cancel", then: []func(*jobset.JobSet){by("bob", "retry", 3)},
			want: "attempt 1 was cancelled 10m ago by alice; attempt 2 is running"},
		"cancel, retried and suspended since": {action: "cancel", then: []func(*jobset.JobSet){by("bob", "retry", 3), by("eve", "suspend", 4)},
			want: "attempt 1 was cancelled 10m ago by alice; attempt 2 was suspended 6m ago by eve"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := states["running"]
			if tc.state != "" {
				state = states[tc.state]
			}
			js := train(state)
			first, err := all[tc.action](js, at(1), call())
			if err != nil {
				t.Fatal(err)
			}
			for _, happens := range tc.then {
				happens(js)
			}
			before := js.DeepCopy()
			second, err := all[tc.action](js, at(1), later("alice", 10))
			if diff := cmp.Diff(before, js); diff != "" {
				t.Errorf("the second request changed the set (-before +after):\n%s", diff)
			}
			if tc.want == "" {
				if diff := cmp.Diff(first, second); err != nil || diff != "" {
					t.Errorf("error %v, answers (-first +second):\n%s", err, diff)
				}
				return
			}
			const prefix = `Operation cannot be fulfilled on jobsets.jobset.x-k8s.io "train": `
			if diff := cmp.Diff(prefix+tc.want, text(err)); diff != "" || !apierrors.IsConflict(err) {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOutdatedAttemptsAreCauses: clients read from the cause of a Conflict which precondition did not hold, and what is so.
func TestOutdatedAttemptsAreCauses(t *testing.T) {
	cases := map[string]struct {
		attempt int32
		state   string
		want    metav1.StatusCause
	}{
		"an earlier attempt": {attempt: 1, state: "running", want: metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.preconditions.attempt",
			Message: "attempt 2 is current (begun by a restart requested by bob)",
		}},
		"a later attempt": {attempt: 9, state: "running", want: metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueNotFound, Field: "spec.preconditions.attempt",
			Message: "attempt 2 is current (begun by a restart requested by bob)",
		}},
		"none yet": {attempt: 1, state: "new", want: metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueNotFound, Field: "spec.preconditions.attempt", Message: "the JobSet has no attempt yet",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train(states[tc.state])
			if tc.state == "running" {
				by("bob", "restart", 0)(js)
			}
			_, err := actions.Suspend(js, &batch.JobSetActionSpec{Preconditions: at(tc.attempt)}, call())
			status, ok := err.(apierrors.APIStatus)
			if !ok || !apierrors.IsConflict(err) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff([]metav1.StatusCause{tc.want}, status.Status().Details.Causes); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
	other := train()
	other.UID = "uid-2"
	uid := train().UID
	_, err := actions.Suspend(other, &batch.JobSetActionSpec{Preconditions: &batch.ActionPreconditions{UID: &uid}}, call())
	status, ok := err.(apierrors.APIStatus)
	if !ok || len(status.Status().Details.Causes) != 1 || status.Status().Details.Causes[0].Field != "spec.preconditions.uid" {
		t.Errorf("of another set of the name: %v", err)
	}
}
