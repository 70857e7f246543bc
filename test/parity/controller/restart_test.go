// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestRow7_3_16_RestartingUntilAllJobsAreReady(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(failurePolicy(1,
		rule{Name: "FailurePolicy_Rule0", Action: jobsetv1alpha2.FailJobSet, OnJobFailureReasons: []string{"DeadlineExceeded"}},
		rule{Name: "Rule1", Action: jobsetv1alpha2.RestartJobSet},
	)))
	e.awaitJobs(ofAttempt(0), allJobs...)
	e.fail(jobB1)
	e.awaitCondition(jobsetv1alpha2.JobSetRestarting, "True FailurePolicy_Rule1")
	e.recreate(1)
	e.ready(jobsOfB...)
	e.awaitCounters("b{ready 3, active 3} a{}")
	e.awaitCondition(jobsetv1alpha2.JobSetRestarting, "True FailurePolicy_Rule1")
	e.ready(jobA)
	e.awaitCondition(jobsetv1alpha2.JobSetRestarting, "False JobsReady")
}

func TestRow7_3_17_RestartStrategies(t *testing.T) {
	gone := allJobs[:3]
	restart := func(t *testing.T, strategy jobsetv1alpha2.JobSetRestartStrategy) *env {
		t.Helper()
		e := newEnv(t, released)
		e.create(testJobSet(failurePolicy(1), func(js *jobSet) { js.Spec.FailurePolicy.RestartStrategy = strategy }))
		e.awaitJobs(ofAttempt(0), allJobs...)
		e.fail(jobB0)
		e.awaitJobs(terminating, allJobs...)
		e.collect(gone...)
		return e
	}
	t.Run("Recreate makes each Job when its predecessor is gone", func(t *testing.T) {
		e := restart(t, jobsetv1alpha2.RestartStrategyRecreate)
		e.awaitJobs(ofAttempt(1), gone...)
		e.awaitJobs(terminating, allJobs[3])
		e.collect(allJobs[3])
		e.awaitJobs(ofAttempt(1), allJobs...)
	})
	t.Run("BlockingRecreate waits until the last predecessor is gone", func(t *testing.T) {
		e := restart(t, jobsetv1alpha2.RestartStrategyBlockingRecreate)
		e.keepsJobs(live)
		e.awaitJobs(terminating, allJobs[3])
		e.collect(allJobs[3])
		e.awaitJobs(ofAttempt(1), allJobs...)
	})
}

func TestRow7_3_18_RuleForOneReplicatedJob(t *testing.T) {
	policy := failurePolicy(1, rule{Action: jobsetv1alpha2.FailJobSet, TargetReplicatedJobs: []string{groupA}})
	t.Run("that contains the failed Job", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet(policy))
		e.awaitJobs(running, allJobs...)
		e.fail(jobA)
		e.awaitFailed("FailJobSetFailurePolicyAction")
		e.awaitRestarts(restarts{})
	})
	t.Run("that does not contain it", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet(policy))
		e.awaitJobs(running, allJobs...)
		e.fail(jobB2)
		e.awaitRestarts(restarts{All: 1, Counted: 1})
		e.awaitCondition(jobsetv1alpha2.JobSetRestarting, "True DefaultFailurePolicy")
	})
}

func TestRow7_3_19_FirstRuleThatMatchesDecides(t *testing.T) {
	fail, restart := rule{Action: jobsetv1alpha2.FailJobSet}, rule{Action: jobsetv1alpha2.RestartJobSet}
	t.Run("Fail before Restart", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet(failurePolicy(3, fail, restart)))
		e.awaitJobs(running, allJobs...)
		e.fail(jobB1)
		e.awaitFailed("FailJobSetFailurePolicyAction")
		e.awaitRestarts(restarts{})
	})
	t.Run("Restart before Fail", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet(failurePolicy(3, restart, fail)))
		e.awaitJobs(running, allJobs...)
		e.fail(jobB1)
		e.awaitRestarts(restarts{All: 1, Counted: 1})
		e.staysActive()
	})
	t.Run("a restarts free of charge, everything else fails", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet(failurePolicy(1,
			rule{Action: jobsetv1alpha2.RestartJobSetAndIgnoreMaxRestarts, TargetReplicatedJobs: []string{groupA}}, fail)))
		e.awaitJobs(ofAttempt(0), allJobs...)
		for attempt := 1; attempt <= 3; attempt++ {
			e.fail(jobA)
			e.awaitRestarts(restarts{All: int32(attempt)})
			e.recreate(attempt)
		}
		e.fail(jobB0)
		e.awaitFailed("FailJobSetFailurePolicyAction")
		e.awaitRestarts(restarts{All: 3})
	})
}

func TestRow7_3_20_CompletesAfterARestart(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(failurePolicy(1)))
	e.awaitJobs(ofAttempt(0), allJobs...)
	e.fail(jobB1)
	e.recreate(1)
	e.complete(allJobs...)
	e.awaitCompleted()
	e.awaitRestarts(restarts{All: 1, Counted: 1})
}
