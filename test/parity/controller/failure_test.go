// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

type rule = jobsetv1alpha2.FailurePolicyRule

func failurePolicy(maxRestarts int32, rules ...rule) func(*jobSet) {
	return func(js *jobSet) {
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: maxRestarts, Rules: rules}
	}
}

// recreate waits until the Jobs of the attempt before go, lets them go, and waits for those of the attempt.
func (e *env) recreate(attempt int) {
	e.Helper()
	e.collectWhenDeleted(allJobs...)
	e.awaitJobs(ofAttempt(attempt), allJobs...)
}

func TestRow7_3_08_MaxRestartsLimitsFailures(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(failurePolicy(1)))
	e.awaitJobs(ofAttempt(0), allJobs...)
	e.fail(jobB0)
	e.awaitRestarts(restarts{All: 1, Counted: 1})
	e.recreate(1)
	e.fail(jobA)
	e.awaitFailed("ReachedMaxRestarts")
	e.awaitRestarts(restarts{All: 1, Counted: 1})
}

// oneFailure fails one Job of b for the reason and with the message that the rules of rows 9 to 11 are about.
func oneFailure(t *testing.T, r rule) *env {
	t.Helper()
	e := newEnv(t, released)
	e.create(testJobSet(failurePolicy(1, r)))
	e.awaitJobs(running, allJobs...)
	e.failFor(batchv1.JobReasonPodFailurePolicy, "Container main for pod ns/p-0 failed with exit code 7 matching FailJob rule at index 0", jobB1)
	return e
}

func TestRow7_3_09_FailJobSetForAnyReason(t *testing.T) {
	e := oneFailure(t, rule{Action: jobsetv1alpha2.FailJobSet})
	e.awaitFailed("FailJobSetFailurePolicyAction")
	e.awaitRestarts(restarts{})
}

func TestRow7_3_10_RuleThatDoesNotMatchLeavesTheDefault(t *testing.T) {
	for name, r := range map[string]rule{
		"by its reason": {
			Action: jobsetv1alpha2.FailJobSet, OnJobFailureReasons: []string{batchv1.JobReasonDeadlineExceeded}},
		"by its message": {
			Action: jobsetv1alpha2.FailJobSet, OnJobFailureMessagePatterns: []string{"exit code 9"}},
		"by its message, although the reason matches": {
			Action: jobsetv1alpha2.FailJobSet, OnJobFailureReasons: []string{batchv1.JobReasonPodFailurePolicy},
			OnJobFailureMessagePatterns: []string{"exit code 9"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := oneFailure(t, r)
			e.awaitRestarts(restarts{All: 1, Counted: 1})
			e.awaitCondition(jobsetv1alpha2.JobSetRestarting, "True DefaultFailurePolicy")
			e.staysActive()
		})
	}
}

func TestRow7_3_11_FailJobSetForAReasonAndAMessage(t *testing.T) {
	for name, pattern := range map[string]string{
		"a pattern of the whole message": `^Container main for pod ns/p-0 failed with exit code \d+ matching FailJob rule at index 0$`,
		"a pattern of a part of it":      "exit code 7",
	} {
		t.Run(name, func(t *testing.T) {
			e := oneFailure(t, rule{
				Action: jobsetv1alpha2.FailJobSet, OnJobFailureReasons: []string{batchv1.JobReasonPodFailurePolicy},
				OnJobFailureMessagePatterns: []string{pattern},
			})
			e.awaitFailed("FailJobSetFailurePolicyAction")
			e.awaitRestarts(restarts{})
		})
	}
}

func TestRow7_3_12_RestartJobSet(t *testing.T) {
	for name, stack := range map[string]string{"gate off": released, "gate on": gated} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, stack)
			e.create(testJobSet(failurePolicy(1, rule{Action: jobsetv1alpha2.RestartJobSet})))
			e.awaitJobs(ofAttempt(0), allJobs...)
			e.fail(jobB1)
			e.awaitRestarts(restarts{All: 1, Counted: 1})
			e.recreate(1)
			e.awaitRestarts(restarts{All: 1, Counted: 1})
		})
	}
}

// single waits until one Job goes and comes again, while the others stay.
func (e *env) single(job string) {
	e.Helper()
	before := e.jobs()
	e.collectWhenDeleted(job)
	e.awaitJobs(live, allJobs...)
	for name, now := range e.jobs() {
		if (now.UID != before[name].UID) != (name == job) {
			e.Errorf("Job %s was created again: %t, want %t", name, now.UID != before[name].UID, name == job)
		}
	}
	if got := e.jobs()[job].Labels[jobsetv1alpha2.JobRestartAttemptKey]; got != "1" {
		e.Errorf("restart attempt of the Job: got %q, want 1", got)
	}
}

func TestRow7_3_13_RestartJob(t *testing.T) {
	e := newEnv(t, gated)
	e.create(testJobSet(failurePolicy(1, rule{Action: jobsetv1alpha2.RestartJob, TargetReplicatedJobs: []string{groupA}})))
	e.awaitJobs(running, allJobs...)
	e.fail(jobA)
	e.awaitRestarts(restarts{Jobs: map[string][]int32{groupA: {1}}, JobsCounted: map[string][]int32{groupA: {1}}})
	e.single(jobA)
	e.staysActive()
}

func TestRow7_3_14_RestartJobAndIgnoreMaxRestarts(t *testing.T) {
	e := newEnv(t, gated)
	e.create(testJobSet(failurePolicy(0, rule{Action: jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts, TargetReplicatedJobs: []string{groupA}})))
	e.awaitJobs(running, allJobs...)
	e.fail(jobA)
	e.awaitRestarts(restarts{Jobs: map[string][]int32{groupA: {1}}})
	e.single(jobA)
	e.staysActive()
}

func TestRow7_3_15_RestartJobSetAndIgnoreMaxRestarts(t *testing.T) {
	for name, stack := range map[string]string{"gate off": released, "gate on": gated} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, stack)
			e.create(testJobSet(failurePolicy(1, rule{Action: jobsetv1alpha2.RestartJobSetAndIgnoreMaxRestarts})))
			e.awaitJobs(ofAttempt(0), allJobs...)
			for attempt := 1; attempt <= 3; attempt++ {
				e.fail(jobB1)
				e.awaitRestarts(restarts{All: int32(attempt)})
				e.recreate(attempt)
			}
			e.staysActive()
		})
	}
}
