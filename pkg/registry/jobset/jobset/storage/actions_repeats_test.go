// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

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

// TestRestartsJoin sends a second restart five minutes after the first, which asked for the part of the set.
func TestRestartsJoin(t *testing.T) {
	job := func(index int32) batch.JobSetRestartSpec {
		return batch.JobSetRestartSpec{Scope: batch.RestartScopeJob, ReplicatedJob: "workers", JobIndex: &index}
	}
	workers := batch.JobSetRestartSpec{Scope: batch.RestartScopeReplicatedJob, ReplicatedJob: "workers"}
	const joined = "attempt 2, requested 5m ago by alice, is not ready yet; not restarted again; set spec.force to restart it"
	cases := map[string]struct {
		first, second batch.JobSetRestartSpec
		then          func(*jobset.JobSet)
		want          string
	}{
		"the set twice":                     {want: joined},
		"the set twice, for attempt 2":      {second: batch.JobSetRestartSpec{Preconditions: at(2)}, want: joined},
		"the set twice, counted":            {second: batch.JobSetRestartSpec{CountTowardsMaxRestarts: true}, want: joined},
		"a Job twice":                       {first: job(1), second: job(1), want: joined},
		"a replicatedJob twice":             {first: workers, second: workers, want: joined},
		"by force":                          {second: batch.JobSetRestartSpec{Force: true}, want: "the JobSet was restarted as attempt 3"},
		"by force, once for attempt 1":      {second: batch.JobSetRestartSpec{Force: true, Preconditions: at(1)}, want: "the JobSet was restarted as attempt 2"},
		"ready since":                       {then: ready, want: "the JobSet was restarted as attempt 3"},
		"the set and then a Job":            {second: job(1), want: "job 1 of replicatedJob workers was restarted as attempt 3"},
		"a Job and then another":            {first: job(0), second: job(1), want: "job 1 of replicatedJob workers was restarted as attempt 3"},
		"a Job and then the set":            {first: job(0), want: "the JobSet was restarted as attempt 3"},
		"restarted by the failure policy":   {then: byPolicy, want: "the JobSet was restarted as attempt 4"},
		"resumed before, and not restarted": {then: func(js *jobset.JobSet) { by("bob", "suspend", 1)(js); by("bob", "resume", 2)(js) }, want: "the JobSet was restarted as attempt 4"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train()
			if _, err := actions.Restart(js, &tc.first, call()); err != nil {
				t.Fatal(err)
			}
			if tc.then != nil {
				tc.then(js)
			}
			before := js.DeepCopy()
			answer, err := actions.Restart(js, &tc.second, later("bob", 5))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, answer.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if tc.want != joined {
				return
			}
			want := &batch.JobSetActionStatus{UID: js.UID, Attempt: 2, Message: joined}
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Errorf("a request that joins another changed nothing, but the answer is (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, js); diff != "" {
				t.Errorf("the set (-before +after):\n%s", diff)
			}
		})
	}
}

// byPolicy is what the controller makes of a set that restarts after a failure.
func byPolicy(js *jobset.JobSet) {
	current := actions.Current(&js.Status)
	current.EndTime, current.Outcome = current.RequestTime.DeepCopy(), jobset.OutcomeRestarted
	js.Status.Attempts = append(js.Status.Attempts, jobset.Attempt{Number: current.Number + 1, Trigger: jobset.TriggerFailurePolicy, Scope: jobset.ScopeJobSet})
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
