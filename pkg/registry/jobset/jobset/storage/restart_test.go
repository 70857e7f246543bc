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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// restarted is the history of train after a restart of a part of it, ten minutes before which it was ready.
func restarted(next jobset.Attempt, reason string) []jobset.Attempt {
	first := train().Status.Attempts[0]
	first.EndTime, first.Outcome, first.EndUser, first.EndReason = stored, jobset.OutcomeRestarted, "alice", reason
	next.Number, next.Trigger, next.User, next.Reason, next.RequestTime = 2, jobset.TriggerRequested, "alice", reason, stored
	return []jobset.Attempt{first, next}
}

const readyBefore = 50*60*1000 + 123 // milliseconds from readyTime to now

func TestRestart(t *testing.T) {
	condition := func(message string) []metav1.Condition {
		return []metav1.Condition{{
			Type: jobset.ConditionRestarting, Status: metav1.ConditionTrue, Reason: "RestartRequested", Message: message,
			LastTransitionTime: second, ObservedGeneration: 3,
		}}
	}
	cases := map[string]struct {
		change func(*jobset.JobSet)
		spec   batch.JobSetRestartSpec
		call   actions.Call
		want   func(*jobset.JobSetStatus)
	}{
		"the whole set": {
			spec: batch.JobSetRestartSpec{Scope: batch.RestartScopeJobSet, Reason: "stuck"},
			want: func(s *jobset.JobSetStatus) {
				s.Restarts, s.Conditions = 1, condition("restart requested by alice: stuck")
				s.Attempts = restarted(jobset.Attempt{Scope: jobset.ScopeJobSet}, "stuck")
			},
		},
		"the whole set, counted, without a reason or scope": {
			spec: batch.JobSetRestartSpec{CountTowardsMaxRestarts: true},
			want: func(s *jobset.JobSetStatus) {
				s.Restarts, s.RestartsCountTowardsMax, s.Conditions = 1, 1, condition("restart requested by alice")
				s.Attempts = restarted(jobset.Attempt{Scope: jobset.ScopeJobSet}, "")
			},
		},
		"accounts of executions are kept": {
			change: func(js *jobset.JobSet) {
				js.Status.ExecutionAttempts, js.Status.StartTime = ptr.To[int32](4), ptr.To(metav1.NewTime(begin))
			},
			call: call(func(c *actions.Call) {
				c.Gates.JobSetActiveDeadlineSeconds, c.Gates.ExecutionAttemptsTracking = true, true
			}),
			want: func(s *jobset.JobSetStatus) {
				s.Restarts, s.Conditions = 1, condition("restart requested by alice")
				s.ExecutionAttempts, s.StartTime = ptr.To[int32](5), &second
				s.Attempts = restarted(jobset.Attempt{Scope: jobset.ScopeJobSet}, "")
			},
		},
		"executions of before anybody counted are the restarts": {
			change: func(js *jobset.JobSet) { js.Status.Restarts = 2 },
			call:   call(func(c *actions.Call) { c.Gates.ExecutionAttemptsTracking = true }),
			want: func(s *jobset.JobSetStatus) {
				s.Restarts, s.Conditions, s.ExecutionAttempts = 3, condition("restart requested by alice"), ptr.To[int32](3)
				s.Attempts = restarted(jobset.Attempt{Scope: jobset.ScopeJobSet}, "")
			},
		},
		"counts of executions stand still while nobody counts": {
			change: func(js *jobset.JobSet) {
				js.Status.ExecutionAttempts, js.Status.StartTime = ptr.To[int32](4), ptr.To(metav1.NewTime(begin))
			},
			want: func(s *jobset.JobSetStatus) {
				s.Restarts, s.Conditions, s.ExecutionAttempts = 1, condition("restart requested by alice"), ptr.To[int32](4)
				s.Attempts = restarted(jobset.Attempt{Scope: jobset.ScopeJobSet}, "")
			},
		},
		"one Job": {
			spec: batch.JobSetRestartSpec{Scope: batch.RestartScopeJob, ReplicatedJob: "workers", JobIndex: ptr.To[int32](1), Reason: "slow"},
			want: func(s *jobset.JobSetStatus) {
				s.ReplicatedJobsStatus[0].JobRestarts = []int32{0, 1}
				s.Attempts = restarted(jobset.Attempt{Scope: jobset.ScopeJob, ReplicatedJob: "workers", JobIndex: ptr.To[int32](1)}, "slow")
			},
		},
		"one Job again, counted": {
			change: func(js *jobset.JobSet) { js.Status.ReplicatedJobsStatus[0].JobRestarts = []int32{2, 1} },
			spec:   batch.JobSetRestartSpec{Scope: batch.RestartScopeJob, ReplicatedJob: "workers", JobIndex: ptr.To[int32](0), CountTowardsMaxRestarts: true},
			want: func(s *jobset.JobSetStatus) {
				s.ReplicatedJobsStatus[0].JobRestarts, s.ReplicatedJobsStatus[0].JobRestartsCountTowardsMax = []int32{3, 1}, []int32{1, 0}
				s.Attempts = restarted(jobset.Attempt{Scope: jobset.ScopeJob, ReplicatedJob: "workers", JobIndex: ptr.To[int32](0)}, "")
			},
		},
		"all Jobs of a replicatedJob, counted": {
			spec: batch.JobSetRestartSpec{Scope: batch.RestartScopeReplicatedJob, ReplicatedJob: "workers", CountTowardsMaxRestarts: true},
			want: func(s *jobset.JobSetStatus) {
				s.ReplicatedJobsStatus[0].JobRestarts, s.ReplicatedJobsStatus[0].JobRestartsCountTowardsMax = []int32{1, 1}, []int32{1, 1}
				s.Attempts = restarted(jobset.Attempt{Scope: jobset.ScopeReplicatedJob, ReplicatedJob: "workers"}, "")
			},
		},
		"Jobs that were not counted yet keep the order of names": {
			change: func(js *jobset.JobSet) { js.Status.ReplicatedJobsStatus = js.Status.ReplicatedJobsStatus[1:] },
			spec:   batch.JobSetRestartSpec{Scope: batch.RestartScopeReplicatedJob, ReplicatedJob: "workers"},
			want: func(s *jobset.JobSetStatus) {
				s.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "workers", JobRestarts: []int32{1, 1}}, {Name: "launcher", Ready: 1}}
				s.Attempts = restarted(jobset.Attempt{Scope: jobset.ScopeReplicatedJob, ReplicatedJob: "workers"}, "")
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train()
			if tc.change != nil {
				tc.change(js)
			}
			want := js.DeepCopy()
			want.Status.ReadyMilliseconds = readyBefore
			want.Status.StartTime = nil
			if tc.spec.Scope != "" && tc.spec.Scope != batch.RestartScopeJobSet {
				want.Status.StartTime = js.Status.StartTime
			}
			tc.want(&want.Status)
			if tc.call.User == "" {
				tc.call = call()
			}
			if _, err := actions.Restart(js, &tc.spec, tc.call); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, js); diff != "" {
				t.Errorf("the set (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestartRefusals(t *testing.T) {
	one := func(rj string, index int32) batch.JobSetRestartSpec {
		return batch.JobSetRestartSpec{Scope: batch.RestartScopeJob, ReplicatedJob: rj, JobIndex: &index}
	}
	replicas := func(n int32) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Replicas = &n }
	}
	counted := batch.JobSetRestartSpec{CountTowardsMaxRestarts: true}
	cases := map[string]struct {
		change func(*jobset.JobSet)
		spec   batch.JobSetRestartSpec
		is     func(error) bool
		want   string
	}{
		"an unknown replicatedJob": {
			spec: one("leader", 0), is: apierrors.IsInvalid,
			want: `spec.replicatedJob: Invalid value: "leader": must be the name of a replicatedJob of the JobSet: launcher, workers`,
		},
		"an index beyond the last": {
			spec: one("workers", 2), is: apierrors.IsInvalid,
			want: `spec.jobIndex: Invalid value: 2: must be the index of a Job of replicatedJob workers, from 0 to 1`,
		},
		"no Jobs": {
			change: replicas(0), spec: one("workers", 0), is: apierrors.IsInvalid,
			want: `spec.replicatedJob: Invalid value: "workers": must have at least 1 Job, but its replicas are 0`,
		},
		"more Jobs than can be counted": {
			change: replicas(1025), spec: one("workers", 0), is: apierrors.IsInvalid,
			want: `spec.replicatedJob: Invalid value: "workers": must have at most 1024 Jobs to be restarted separately, but has 1025; restart the whole JobSet`,
		},
		"counting without a policy": {
			change: func(js *jobset.JobSet) { js.Spec.FailurePolicy = nil }, spec: counted, is: apierrors.IsConflict,
			want: "the JobSet has no failure policy, so restarts cannot count towards maxRestarts; leave countTowardsMaxRestarts out",
		},
		"counting beyond the limit": {
			change: func(js *jobset.JobSet) {
				js.Status.RestartsCountTowardsMax, js.Status.ReplicatedJobsStatus[0].JobRestartsCountTowardsMax = 1, []int32{0, 1}
			},
			spec: counted, is: apierrors.IsConflict,
			want: "the restart would use 1 of the restarts that the failure policy allows, but 2 of 2 are already used; leave countTowardsMaxRestarts out",
		},
		"counting more Jobs than restarts are left": {
			change: func(js *jobset.JobSet) { js.Status.RestartsCountTowardsMax, js.Status.AddedRestarts = 4, 3 },
			spec:   batch.JobSetRestartSpec{Scope: batch.RestartScopeReplicatedJob, ReplicatedJob: "workers", CountTowardsMaxRestarts: true},
			is:     apierrors.IsConflict,
			want:   "the restart would use 2 of the restarts that the failure policy allows, but 4 of 5 are already used; leave countTowardsMaxRestarts out",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train()
			if tc.change != nil {
				tc.change(js)
			}
			before := js.DeepCopy()
			if _, err := actions.Restart(js, &tc.spec, call()); !tc.is(err) || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if diff := cmp.Diff(before, js); diff != "" {
				t.Errorf("a refused request changed the set (-before +after):\n%s", diff)
			}
		})
	}
}

func TestRestartsThatRetriesAdded(t *testing.T) {
	js := train(func(js *jobset.JobSet) { js.Status.RestartsCountTowardsMax, js.Status.AddedRestarts = 2, 1 })
	if _, err := actions.Restart(js, &batch.JobSetRestartSpec{CountTowardsMaxRestarts: true}, call()); err != nil {
		t.Error(err)
	}
}

// TestOtherRestartsOfTheAttempt: a restart of something else is no repetition, and its attempt has passed.
func TestOtherRestartsOfTheAttempt(t *testing.T) {
	job := func(index int32, p *batch.ActionPreconditions) *batch.JobSetRestartSpec {
		return &batch.JobSetRestartSpec{Scope: batch.RestartScopeJob, ReplicatedJob: "workers", JobIndex: &index, Preconditions: p}
	}
	js := train()
	if _, err := actions.Restart(js, job(0, at(1)), call()); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]*batch.JobSetRestartSpec{
		"another Job": job(1, at(1)), "the whole set": {Preconditions: at(1)},
		"the replicatedJob": {Scope: batch.RestartScopeReplicatedJob, ReplicatedJob: "workers", Preconditions: at(1)},
	} {
		_, err := actions.Restart(js, spec, call())
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "preconditions.attempt is 1, but attempt 2 is current (begun by a restart requested by alice)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if answer, err := actions.Restart(js, job(0, at(1)), call()); err != nil || answer.Attempt != 2 {
		t.Errorf("the same Job: %v, %+v", err, answer)
	}
}

// TestOriginsOfAttempts checks that a late request gets the reason of the current attempt.
func TestOriginsOfAttempts(t *testing.T) {
	cases := map[string]struct {
		entry jobset.Attempt
		want  string
	}{
		"a start":         {entry: jobset.Attempt{Trigger: jobset.TriggerStart}, want: "when the JobSet was started"},
		"the policy":      {entry: jobset.Attempt{Trigger: jobset.TriggerFailurePolicy}, want: "by the failure policy"},
		"a rule":          {entry: jobset.Attempt{Trigger: jobset.TriggerFailurePolicy, Rule: "oom"}, want: `by rule "oom" of the failure policy`},
		"a restart":       {entry: jobset.Attempt{Trigger: jobset.TriggerRequested, User: "bob", Scope: jobset.ScopeJob}, want: "by a restart requested by bob"},
		"a retry":         {entry: jobset.Attempt{Trigger: jobset.TriggerRetry, User: "bob"}, want: "by a retry requested by bob"},
		"a resume":        {entry: jobset.Attempt{Trigger: jobset.TriggerResume, User: "bob"}, want: "when the JobSet was resumed by bob"},
		"a silent resume": {entry: jobset.Attempt{Trigger: jobset.TriggerResume}, want: "when the JobSet was resumed"},
		"a preemption":    {entry: jobset.Attempt{Trigger: jobset.TriggerPreemption}, want: "when its queue admitted the JobSet again"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train()
			tc.entry.Number = 2
			js.Status.Attempts = append(js.Status.Attempts, tc.entry)
			_, err := actions.Restart(js, &batch.JobSetRestartSpec{Preconditions: at(1)}, call())
			if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "preconditions.attempt is 1, but attempt 2 is current (begun "+tc.want+")") {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
