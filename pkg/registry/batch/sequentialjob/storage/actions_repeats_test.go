// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
)

// by calls an action as the user, so many minutes after now, without preconditions.
func by(user, name string, minutes int) func(*batch.SequentialJob) {
	return func(sj *batch.SequentialJob) {
		if _, err := all[name](sj, nil, later(user, minutes)); err != nil {
			panic(err)
		}
	}
}

// runs is what the controller makes of a step that starts.
func runs(sj *batch.SequentialJob) {
	i := *sj.Status.Progress.CurrentIndex
	if int(i) == len(sj.Status.Steps) {
		sj.Status.Steps = append(sj.Status.Steps, batch.SequentialJobStepStatus{Name: sj.Spec.Steps[i].Name, Attempts: 1})
	}
	step(sj).State, step(sj).ChildUID = batch.StepRunning, types.UID("child")
}

// TestRepeats sends the same request for attempt 2 a second time, ten minutes after the first, and after what happened in the
// meantime. It is answered as the first one while what was asked for is still so, and refused otherwise.
func TestRepeats(t *testing.T) {
	edited := func(suspend bool) func(*batch.SequentialJob) {
		return func(sj *batch.SequentialJob) { sj.Spec.Suspend = &suspend }
	}
	replaced := func(sj *batch.SequentialJob) { step(sj).Attempts++ }
	deleted := func(sj *batch.SequentialJob) { sj.DeletionTimestamp = at(90) }
	const outdated = `preconditions.attempt is 2, but attempt 3 of step "train" is current`
	cases := map[string]struct {
		action, state, step string
		then                []func(*batch.SequentialJob)
		want                string // empty for the first answer
	}{
		"restart, running since":    {action: "restart", then: []func(*batch.SequentialJob){runs}},
		"restart, failed since":     {action: "restart", then: []func(*batch.SequentialJob){runs, failed}},
		"restart, step ended since": {action: "restart", step: "train", then: []func(*batch.SequentialJob){runs, between}},
		"restart, next one runs":    {action: "restart", step: "train", then: []func(*batch.SequentialJob){runs, between, runs}},
		"restart, of the step that runs then": {action: "restart", then: []func(*batch.SequentialJob){runs, between, runs, func(sj *batch.SequentialJob) { step(sj).Attempts = 9 }},
			want: `preconditions.attempt is 2, but attempt 9 of step "evaluate" is current`},
		"restart, completed since":   {action: "restart", step: "train", then: []func(*batch.SequentialJob){runs, states["completed"]}},
		"restart, child lost since":  {action: "restart", then: []func(*batch.SequentialJob){runs, replaced}, want: `step "train" was restarted 10m ago by alice; attempt 4 of step "train" is running`},
		"restart, suspended by edit": {action: "restart", then: []func(*batch.SequentialJob){edited(true)}, want: `step "train" was restarted 10m ago by alice; the SequentialJob is suspended`},
		"restart, restarted since": {action: "restart", then: []func(*batch.SequentialJob){runs, by("bob", "restart", 3)},
			want: `preconditions.attempt is 2, but attempt 4 of step "train" is current`},
		"restart, suspended since": {action: "restart", then: []func(*batch.SequentialJob){by("bob", "suspend", 3)}, want: outdated},
		"restart, cancelled since": {action: "restart", then: []func(*batch.SequentialJob){by("bob", "cancel", 3)}, want: outdated},
		"restart, deleted since":   {action: "restart", then: []func(*batch.SequentialJob){deleted}, want: "the SequentialJob is being deleted; recreate it after it is gone"},

		"suspend":                  {action: "suspend"},
		"suspend, cancelled since": {action: "suspend", then: []func(*batch.SequentialJob){by("bob", "cancel", 3)}, want: "the SequentialJob has failed (Cancelled); there is nothing to suspend; retry it instead"},
		"suspend, resumed and restarted since": {action: "suspend", then: []func(*batch.SequentialJob){by("bob", "resume", 3), by("bob", "restart", 4)},
			want: outdated},

		"resume":                  {action: "resume", state: "suspended"},
		"resume, failed since":    {action: "resume", state: "suspended", then: []func(*batch.SequentialJob){runs, failed}, want: "the SequentialJob has failed (JobFailed); there is nothing to resume; retry it instead"},
		"resume, restarted since": {action: "resume", state: "suspended", then: []func(*batch.SequentialJob){by("bob", "restart", 3)}, want: outdated},

		"retry":                   {action: "retry", state: "failed"},
		"retry, failed again":     {action: "retry", state: "failed", then: []func(*batch.SequentialJob){runs, failed}},
		"retry, next one runs":    {action: "retry", state: "failed", step: "train", then: []func(*batch.SequentialJob){runs, between, runs}},
		"retry, retried since":    {action: "retry", state: "failed", then: []func(*batch.SequentialJob){runs, failed, by("bob", "retry", 3)}, want: `preconditions.attempt is 2, but attempt 4 of step "train" is current`},
		"retry, child lost since": {action: "retry", state: "failed", then: []func(*batch.SequentialJob){runs, replaced}, want: `step "train" was retried 10m ago by alice; attempt 4 of step "train" is running`},
		"retry, cancelled since":  {action: "retry", state: "failed", then: []func(*batch.SequentialJob){by("bob", "cancel", 3)}, want: outdated},

		"cancel":                {action: "cancel"},
		"cancel, deleted since": {action: "cancel", then: []func(*batch.SequentialJob){deleted}},
		"cancel, retried since": {action: "cancel", then: []func(*batch.SequentialJob){by("bob", "retry", 3)}, want: outdated},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := states["running"]
			if tc.state != "" {
				state = states[tc.state]
			}
			sj, p := nightly(state), attempt(2)
			p.Step = tc.step
			first, err := all[tc.action](sj, p, call())
			if err != nil {
				t.Fatal(err)
			}
			for _, happens := range tc.then {
				happens(sj)
			}
			before := sj.DeepCopy()
			second, err := all[tc.action](sj, p, later("alice", 10))
			if diff := cmp.Diff(before, sj); diff != "" {
				t.Errorf("the second request changed the sequence (-before +after):\n%s", diff)
			}
			if tc.want == "" {
				if diff := cmp.Diff(first, second); err != nil || diff != "" {
					t.Errorf("error %v, answers (-first +second):\n%s", err, diff)
				}
				return
			}
			if diff := cmp.Diff(prefix+tc.want, text(err)); diff != "" || !apierrors.IsConflict(err) {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRetriesFromEarlierSteps repeats a retry from the first step, for the attempt of the step that had failed.
func TestRetriesFromEarlierSteps(t *testing.T) {
	named := &batch.SequentialJobPreconditions{Step: "train", Attempt: ptr.To[int32](2)}
	cases := map[string]struct {
		from   string
		p      *batch.SequentialJobPreconditions
		then   []func(*batch.SequentialJob)
		wanted string
	}{
		"the same":                          {from: "prepare", p: named},
		"the same, without the step's name": {from: "prepare", p: attempt(2)},
		"another step":                      {from: "train", p: named, wanted: `preconditions.step is train, but attempt 2 of step "prepare" is current`},
		"the step that failed":              {p: named, wanted: `preconditions.step is train, but attempt 2 of step "prepare" is current`},
		"another attempt":                   {from: "prepare", p: attempt(7), wanted: `preconditions.attempt is 7, but attempt 2 of step "prepare" is current`},
		"replaced since": {from: "prepare", p: named, then: []func(*batch.SequentialJob){func(sj *batch.SequentialJob) { step(sj).Attempts++ }},
			wanted: `step "prepare" was retried 10m ago by alice; attempt 3 of step "prepare" is running`},
		"train runs since": {from: "prepare", p: named, then: []func(*batch.SequentialJob){trains}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sj := nightly(failed)
			first, err := retryFrom("prepare")(sj, named, call())
			if err != nil {
				t.Fatal(err)
			}
			for _, happens := range tc.then {
				happens(sj)
			}
			before := sj.DeepCopy()
			second, err := retryFrom(tc.from)(sj, tc.p, later("alice", 10))
			if diff := cmp.Diff(before, sj); diff != "" {
				t.Errorf("the second request changed the sequence (-before +after):\n%s", diff)
			}
			if tc.wanted != "" {
				if diff := cmp.Diff(prefix+tc.wanted, text(err)); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff(first, second); err != nil || diff != "" {
				t.Errorf("error %v, answers (-first +second):\n%s", err, diff)
			}
		})
	}
}

// trains is what the controller makes of a sequence whose first step completes, so that the second one runs again.
func trains(sj *batch.SequentialJob) {
	sj.Status.Progress = batch.SequentialJobProgress{CurrentIndex: ptr.To[int32](1), CompletedIndices: []int32{0}}
	step(sj).Attempts++
	runs(sj)
}

// TestRetryAgain: a sequence that fails after a retry from an earlier step can be retried from there once more.
func TestRetryAgain(t *testing.T) {
	sj := nightly(failed)
	for i := int32(2); i < 5; i++ {
		answer, err := retryFrom("prepare")(sj, &batch.SequentialJobPreconditions{Step: "train", Attempt: ptr.To(i)}, call())
		if err != nil || answer.Attempt != i {
			t.Fatalf("retry %d: %v, %+v", i, err, answer)
		}
		trains(sj)
		failed(sj)
	}
}

// TestRestartsJoin sends a second restart five minutes after the first.
func TestRestartsJoin(t *testing.T) {
	const joined = `attempt 3 of step "train", requested 5m ago by alice, has not started yet; not restarted again`
	cases := map[string]struct {
		then func(*batch.SequentialJob)
		want string
	}{
		"at once":              {then: func(*batch.SequentialJob) {}, want: joined},
		"once it runs":         {then: runs, want: `step "train" was restarted as attempt 4`},
		"once a child is seen": {then: func(sj *batch.SequentialJob) { step(sj).ChildUID = "c" }, want: `step "train" was restarted as attempt 4`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sj := nightly()
			by("alice", "restart", 0)(sj)
			tc.then(sj)
			before := sj.DeepCopy()
			answer, err := all["restart"](sj, nil, later("bob", 5))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, answer.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if tc.want != joined {
				return
			}
			want := &batch.SequentialJobActionStatus{UID: "uid-1", Step: "train", Attempt: 3, Message: joined}
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, sj); diff != "" {
				t.Errorf("the sequence (-before +after):\n%s", diff)
			}
		})
	}
}

// TestPreconditions: clients read from the cause of a Conflict which precondition did not hold, and what is so.
func TestPreconditions(t *testing.T) {
	const is = `attempt 2 of step "train" is current`
	invalid, missing := metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeFieldValueNotFound
	cases := map[string]struct {
		p     *batch.SequentialJobPreconditions
		state string
		want  metav1.StatusCause
		text  string
	}{
		"another sequence": {p: &batch.SequentialJobPreconditions{UID: ptr.To[types.UID]("uid-2")},
			want: metav1.StatusCause{Type: invalid, Field: "spec.preconditions.uid", Message: "the SequentialJob was deleted and recreated"},
			text: "preconditions.uid is uid-2, but the SequentialJob has the UID uid-1: it was deleted and recreated"},
		"another step": {p: &batch.SequentialJobPreconditions{Step: "prepare", Attempt: ptr.To[int32](2)},
			want: metav1.StatusCause{Type: invalid, Field: "spec.preconditions.step", Message: is}, text: "preconditions.step is prepare, but " + is},
		"an earlier attempt": {p: attempt(1), want: metav1.StatusCause{Type: invalid, Field: "spec.preconditions.attempt", Message: is}, text: "preconditions.attempt is 1, but " + is},
		"a later attempt":    {p: attempt(3), want: metav1.StatusCause{Type: missing, Field: "spec.preconditions.attempt", Message: is}, text: "preconditions.attempt is 3, but " + is},
		"before the start": {p: attempt(1), state: "pending",
			want: metav1.StatusCause{Type: missing, Field: "spec.preconditions.attempt", Message: `step "prepare" is current, which has not started`},
			text: `preconditions.attempt is 1, but step "prepare" is current, which has not started`},
		"after the end": {p: &batch.SequentialJobPreconditions{Step: "train"}, state: "completed",
			want: metav1.StatusCause{Type: invalid, Field: "spec.preconditions.step", Message: "all steps have completed"},
			text: "preconditions.step is train, but all steps have completed"},
	}
	for name, tc := range cases {
		for action, act := range all {
			t.Run(action+": "+name, func(t *testing.T) {
				state := states["running"]
				if tc.state != "" {
					state = states[tc.state]
				}
				_, err := act(nightly(state), tc.p, call())
				if diff := cmp.Diff(prefix+tc.text, text(err)); diff != "" {
					t.Fatalf("error (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]metav1.StatusCause{tc.want}, err.(apierrors.APIStatus).Status().Details.Causes); diff != "" {
					t.Errorf("causes (-want +got):\n%s", diff)
				}
			})
		}
	}
	met := &batch.SequentialJobPreconditions{UID: ptr.To[types.UID]("uid-1"), Step: "train", Attempt: ptr.To[int32](2)}
	if _, err := actions.Cancel(nightly(), &batch.SequentialJobActionSpec{Preconditions: met}, call()); err != nil {
		t.Error(err)
	}
}
