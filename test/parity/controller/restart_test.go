// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestRow7_3_16_RestartingUntilAllJobsAreReady(t *testing.T) {
	w := newWorld(t, released)
	w.create(testJobSet(failurePolicy(1,
		rule{Name: "FailurePolicy_Rule0", Action: jobsetv1alpha2.FailJobSet, OnJobFailureReasons: []string{"DeadlineExceeded"}},
		rule{Name: "Rule1", Action: jobsetv1alpha2.RestartJobSet},
	)))
	w.awaitJobs(ofAttempt(0), allJobs...)
	w.fail(jobB1)
	w.awaitCondition(jobsetv1alpha2.JobSetRestarting, "True FailurePolicy_Rule1")
	w.recreate(1)
	w.ready(jobsOfB...)
	w.awaitCounters("b{ready 3, active 3} a{}")
	w.awaitCondition(jobsetv1alpha2.JobSetRestarting, "True FailurePolicy_Rule1")
	w.ready(jobA)
	w.awaitCondition(jobsetv1alpha2.JobSetRestarting, "False JobsReady")
}

func TestRow7_3_17_RestartStrategies(t *testing.T) {
	gone := allJobs[:3]
	restart := func(t *testing.T, strategy jobsetv1alpha2.JobSetRestartStrategy) *world {
		t.Helper()
		w := newWorld(t, released)
		w.create(testJobSet(failurePolicy(1), func(js *jobSet) { js.Spec.FailurePolicy.RestartStrategy = strategy }))
		w.awaitJobs(ofAttempt(0), allJobs...)
		w.fail(jobB0)
		w.awaitJobs(terminating, allJobs...)
		w.collect(gone...)
		return w
	}
	t.Run("Recreate makes each Job when its predecessor is gone", func(t *testing.T) {
		w := restart(t, jobsetv1alpha2.RestartStrategyRecreate)
		w.awaitJobs(ofAttempt(1), gone...)
		w.awaitJobs(terminating, allJobs[3])
		w.collect(allJobs[3])
		w.awaitJobs(ofAttempt(1), allJobs...)
	})
	t.Run("BlockingRecreate waits until the last predecessor is gone", func(t *testing.T) {
		w := restart(t, jobsetv1alpha2.RestartStrategyBlockingRecreate)
		w.keepsJobs(live)
		w.awaitJobs(terminating, allJobs[3])
		w.collect(allJobs[3])
		w.awaitJobs(ofAttempt(1), allJobs...)
	})
}

func TestRow7_3_18_RuleForOneReplicatedJob(t *testing.T) {
	policy := failurePolicy(1, rule{Action: jobsetv1alpha2.FailJobSet, TargetReplicatedJobs: []string{groupA}})
	t.Run("that contains the failed Job", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(testJobSet(policy))
		w.awaitJobs(running, allJobs...)
		w.fail(jobA)
		w.awaitFailed("FailJobSetFailurePolicyAction")
		w.awaitRestarts(restarts{})
	})
	t.Run("that does not contain it", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(testJobSet(policy))
		w.awaitJobs(running, allJobs...)
		w.fail(jobB2)
		w.awaitRestarts(restarts{All: 1, Counted: 1})
		w.awaitCondition(jobsetv1alpha2.JobSetRestarting, "True DefaultFailurePolicy")
	})
}

func TestRow7_3_19_FirstRuleThatMatchesDecides(t *testing.T) {
	fail, restart := rule{Action: jobsetv1alpha2.FailJobSet}, rule{Action: jobsetv1alpha2.RestartJobSet}
	t.Run("Fail before Restart", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(testJobSet(failurePolicy(3, fail, restart)))
		w.awaitJobs(running, allJobs...)
		w.fail(jobB1)
		w.awaitFailed("FailJobSetFailurePolicyAction")
		w.awaitRestarts(restarts{})
	})
	t.Run("Restart before Fail", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(testJobSet(failurePolicy(3, restart, fail)))
		w.awaitJobs(running, allJobs...)
		w.fail(jobB1)
		w.awaitRestarts(restarts{All: 1, Counted: 1})
		w.staysActive()
	})
	t.Run("a restarts free of charge, everything else fails", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(testJobSet(failurePolicy(1,
			rule{Action: jobsetv1alpha2.RestartJobSetAndIgnoreMaxRestarts, TargetReplicatedJobs: []string{groupA}}, fail)))
		w.awaitJobs(ofAttempt(0), allJobs...)
		for attempt := 1; attempt <= 3; attempt++ {
			w.fail(jobA)
			w.awaitRestarts(restarts{All: int32(attempt)})
			w.recreate(attempt)
		}
		w.fail(jobB0)
		w.awaitFailed("FailJobSetFailurePolicyAction")
		w.awaitRestarts(restarts{All: 3})
	})
}

func TestRow7_3_20_CompletesAfterARestart(t *testing.T) {
	w := newWorld(t, released)
	w.create(testJobSet(failurePolicy(1)))
	w.awaitJobs(ofAttempt(0), allJobs...)
	w.fail(jobB1)
	w.recreate(1)
	w.complete(allJobs...)
	w.awaitCompleted()
	w.awaitRestarts(restarts{All: 1, Counted: 1})
}
