// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func startup(order jobsetv1alpha2.StartupPolicyOptions) func(*jobSet) {
	return func(js *jobSet) { js.Spec.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: order} }
}

const (
	inProgress = "True InOrderStartupPolicyInProgress"
	started    = "True InOrderStartupPolicyCompleted"
)

func TestRow7_3_27_SuspendedSetHasAllJobsInAnyStartupOrder(t *testing.T) {
	for _, order := range []jobsetv1alpha2.StartupPolicyOptions{jobsetv1alpha2.InOrder, jobsetv1alpha2.AnyOrder} {
		t.Run(string(order), func(t *testing.T) {
			e := newEnv(t, released)
			e.create(testJobSet(suspend, startup(order)))
			e.awaitJobs(suspended, allJobs...)
			e.awaitCounters("b{suspended 3} a{suspended 1}")
			e.keepsJobs(running)
			for _, kind := range []string{jobsetv1alpha2.JobSetStartupPolicyInProgress, jobsetv1alpha2.JobSetStartupPolicyCompleted} {
				if got := stateOf(e.get(), kind); got != "" {
					t.Errorf("condition %s of a suspended set is %q, want none", kind, got)
				}
			}
		})
	}
}

func TestRow7_3_28_AnyOrderResumesEverything(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(suspend, startup(jobsetv1alpha2.AnyOrder)))
	e.awaitJobs(suspended, allJobs...)
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
	e.update(resume)
	e.awaitJobs(running, allJobs...)
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "False ResumeJobs")
}

func TestRow7_3_29_InOrderResumesOneAfterTheOther(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(suspend, startup(jobsetv1alpha2.InOrder)))
	e.awaitJobs(suspended, allJobs...)
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
	e.update(resume)
	e.awaitJobs(running, jobA)
	e.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, inProgress)
	e.awaitCounters("b{suspended 3} a{}")
	e.keepsJobs(running, jobA)
	e.ready(jobA)
	e.awaitJobs(running, allJobs...)
	e.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, inProgress)
	e.ready(jobsOfB...)
	e.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyCompleted, started)
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "False ResumeJobs")
	if got := stateOf(e.get(), jobsetv1alpha2.JobSetStartupPolicyInProgress); got[:5] != "False" {
		t.Errorf("condition %s is %q beside %s", jobsetv1alpha2.JobSetStartupPolicyInProgress, got, jobsetv1alpha2.JobSetStartupPolicyCompleted)
	}
}

// startInOrder goes through the start of an attempt.
func (e *env) startInOrder(attempt int) {
	e.Helper()
	e.awaitJobs(ofAttempt(attempt), jobA)
	e.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, inProgress)
	e.activate(jobA)
	e.awaitCounters("b{} a{active 1}")
	e.keepsJobs(live, jobA)
	e.ready(jobA)
	e.awaitJobs(ofAttempt(attempt), allJobs...)
	e.activate(jobsOfB...)
	e.awaitCounters("b{active 3} a{ready 1, active 1}")
	e.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, inProgress)
	e.ready(jobsOfB...)
	e.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyCompleted, started)
}

func TestRow7_3_30_InOrderStartsOneAfterTheOther(t *testing.T) {
	t.Run("until it completes", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet(startup(jobsetv1alpha2.InOrder)))
		e.startInOrder(0)
		e.complete(allJobs...)
		e.awaitCompleted()
	})
	t.Run("and again after a restart", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet(startup(jobsetv1alpha2.InOrder), failurePolicy(1)))
		e.startInOrder(0)
		e.fail(jobB0)
		e.collectWhenDeleted(allJobs...)
		e.startInOrder(1)
	})
}

const (
	groupC = "replicated-job-c"
	jobC   = setName + "-" + groupC + "-0"
)

// chain returns a set of a with one Job, b with three, and, when it is used, c with one.
func chain(ofB []jobsetv1alpha2.DependsOn, ofC ...jobsetv1alpha2.DependsOn) *jobSet {
	return testJobSet(func(js *jobSet) {
		js.Spec.ReplicatedJobs[1].DependsOn = ofB
		if len(ofC) > 0 {
			builders.WithJobs(groupC, 1, 1, func(rj *replicatedJob) { rj.DependsOn = ofC })(js)
		}
	})
}

func on(name string, status jobsetv1alpha2.DependsOnStatus) jobsetv1alpha2.DependsOn {
	return jobsetv1alpha2.DependsOn{Name: name, Status: status}
}

func TestRow7_3_32_DependsOn(t *testing.T) {
	ready, complete := jobsetv1alpha2.DependencyReady, jobsetv1alpha2.DependencyComplete
	withC := append([]string{jobA, jobB0, jobB1, jobB2}, jobC)
	t.Run("b after a is ready", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(chain([]jobsetv1alpha2.DependsOn{on(groupA, ready)}))
		e.awaitJobs(live, jobA)
		e.keepsJobs(live, jobA)
		e.ready(jobA)
		e.awaitJobs(running, allJobs...)
		e.complete(allJobs...)
		e.awaitCompleted()
	})
	t.Run("b after a is complete, c after b is ready", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(chain([]jobsetv1alpha2.DependsOn{on(groupA, complete)}, on(groupB, ready)))
		e.awaitJobs(live, jobA)
		e.ready(jobA)
		e.awaitCounters("c{} b{} a{ready 1, active 1}")
		e.keepsJobs(live, jobA)
		e.complete(jobA)
		e.awaitJobs(live, allJobs...)
		e.ready(jobB0, jobB1)
		e.awaitCounters("c{} b{ready 2, active 2} a{succeeded 1}")
		e.keepsJobs(live, allJobs...)
		e.ready(jobB2)
		e.awaitJobs(live, withC...)
		e.complete(jobB0, jobB1, jobB2, jobC)
		e.awaitCompleted()
	})
	t.Run("c after a and b are complete", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(chain(nil, on(groupA, complete), on(groupB, complete)))
		e.awaitJobs(live, allJobs...)
		e.complete(jobsOfB...)
		e.awaitCounters("c{} b{succeeded 3} a{}")
		e.keepsJobs(live, allJobs...)
		e.complete(jobA)
		e.awaitJobs(live, withC...)
		e.complete(jobC)
		e.awaitCompleted()
	})
	t.Run("c after a is ready and b is complete", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(chain(nil, on(groupA, ready), on(groupB, complete)))
		e.awaitJobs(live, allJobs...)
		e.ready(jobA)
		e.awaitCounters("c{} b{} a{ready 1, active 1}")
		e.keepsJobs(live, allJobs...)
		e.complete(jobsOfB...)
		e.awaitJobs(live, withC...)
	})
	t.Run("a suspended set has only what depends on nothing", func(t *testing.T) {
		e := newEnv(t, released)
		js := chain([]jobsetv1alpha2.DependsOn{on(groupA, ready)})
		suspend(js)
		e.create(js)
		e.awaitJobs(suspended, jobA)
		e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
		e.keepsJobs(live, jobA)
		e.update(resume)
		e.awaitJobs(running, jobA)
		e.keepsJobs(live, jobA)
		e.ready(jobA)
		e.awaitJobs(running, allJobs...)
	})
}
