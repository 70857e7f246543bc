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
			w := newWorld(t, released)
			w.create(testJobSet(suspend, startup(order)))
			w.awaitJobs(suspended, allJobs...)
			w.awaitCounters("b{suspended 3} a{suspended 1}")
			w.keepsJobs(running)
			for _, kind := range []string{jobsetv1alpha2.JobSetStartupPolicyInProgress, jobsetv1alpha2.JobSetStartupPolicyCompleted} {
				if got := stateOf(w.get(), kind); got != "" {
					t.Errorf("condition %s of a suspended set is %q, want none", kind, got)
				}
			}
		})
	}
}

func TestRow7_3_28_AnyOrderResumesEverything(t *testing.T) {
	w := newWorld(t, released)
	w.create(testJobSet(suspend, startup(jobsetv1alpha2.AnyOrder)))
	w.awaitJobs(suspended, allJobs...)
	w.update(resume)
	w.awaitJobs(running, allJobs...)
	w.awaitCondition(jobsetv1alpha2.JobSetSuspended, "False ResumeJobs")
}

func TestRow7_3_29_InOrderResumesOneAfterTheOther(t *testing.T) {
	w := newWorld(t, released)
	w.create(testJobSet(suspend, startup(jobsetv1alpha2.InOrder)))
	w.awaitJobs(suspended, allJobs...)
	w.update(resume)
	w.awaitJobs(running, jobA)
	w.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, inProgress)
	w.awaitCounters("b{suspended 3} a{}")
	w.keepsJobs(running, jobA)
	w.ready(jobA)
	w.awaitJobs(running, allJobs...)
	w.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, inProgress)
	w.ready(jobsOfB...)
	w.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyCompleted, started)
	w.awaitCondition(jobsetv1alpha2.JobSetSuspended, "False ResumeJobs")
	if got := stateOf(w.get(), jobsetv1alpha2.JobSetStartupPolicyInProgress); got[:5] != "False" {
		t.Errorf("condition %s is %q beside %s", jobsetv1alpha2.JobSetStartupPolicyInProgress, got, jobsetv1alpha2.JobSetStartupPolicyCompleted)
	}
}

// startInOrder goes through the start of an attempt.
func (w *world) startInOrder(attempt int) {
	w.Helper()
	w.awaitJobs(ofAttempt(attempt), jobA)
	w.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, inProgress)
	w.activate(jobA)
	w.awaitCounters("b{} a{active 1}")
	w.keepsJobs(live, jobA)
	w.ready(jobA)
	w.awaitJobs(ofAttempt(attempt), allJobs...)
	w.activate(jobsOfB...)
	w.awaitCounters("b{active 3} a{ready 1, active 1}")
	w.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, inProgress)
	w.ready(jobsOfB...)
	w.awaitCondition(jobsetv1alpha2.JobSetStartupPolicyCompleted, started)
}

func TestRow7_3_30_InOrderStartsOneAfterTheOther(t *testing.T) {
	t.Run("until it completes", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(testJobSet(startup(jobsetv1alpha2.InOrder)))
		w.startInOrder(0)
		w.complete(allJobs...)
		w.awaitCompleted()
	})
	t.Run("and again after a restart", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(testJobSet(startup(jobsetv1alpha2.InOrder), failurePolicy(1)))
		w.startInOrder(0)
		w.fail(jobB0)
		w.collectWhenDeleted(allJobs...)
		w.startInOrder(1)
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
		w := newWorld(t, released)
		w.create(chain([]jobsetv1alpha2.DependsOn{on(groupA, ready)}))
		w.awaitJobs(live, jobA)
		w.keepsJobs(live, jobA)
		w.ready(jobA)
		w.awaitJobs(running, allJobs...)
		w.complete(allJobs...)
		w.awaitCompleted()
	})
	t.Run("b after a is complete, c after b is ready", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(chain([]jobsetv1alpha2.DependsOn{on(groupA, complete)}, on(groupB, ready)))
		w.awaitJobs(live, jobA)
		w.ready(jobA)
		w.awaitCounters("c{} b{} a{ready 1, active 1}")
		w.keepsJobs(live, jobA)
		w.complete(jobA)
		w.awaitJobs(live, allJobs...)
		w.ready(jobB0, jobB1)
		w.awaitCounters("c{} b{ready 2, active 2} a{succeeded 1}")
		w.keepsJobs(live, allJobs...)
		w.ready(jobB2)
		w.awaitJobs(live, withC...)
		w.complete(jobB0, jobB1, jobB2, jobC)
		w.awaitCompleted()
	})
	t.Run("c after a and b are complete", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(chain(nil, on(groupA, complete), on(groupB, complete)))
		w.awaitJobs(live, allJobs...)
		w.complete(jobsOfB...)
		w.awaitCounters("c{} b{succeeded 3} a{}")
		w.keepsJobs(live, allJobs...)
		w.complete(jobA)
		w.awaitJobs(live, withC...)
		w.complete(jobC)
		w.awaitCompleted()
	})
	t.Run("c after a is ready and b is complete", func(t *testing.T) {
		w := newWorld(t, released)
		w.create(chain(nil, on(groupA, ready), on(groupB, complete)))
		w.awaitJobs(live, allJobs...)
		w.ready(jobA)
		w.awaitCounters("c{} b{} a{ready 1, active 1}")
		w.keepsJobs(live, allJobs...)
		w.complete(jobsOfB...)
		w.awaitJobs(live, withC...)
	})
	t.Run("a suspended set has only what depends on nothing", func(t *testing.T) {
		w := newWorld(t, released)
		js := chain([]jobsetv1alpha2.DependsOn{on(groupA, ready)})
		suspend(js)
		w.create(js)
		w.awaitJobs(suspended, jobA)
		w.awaitCondition(jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
		w.keepsJobs(live, jobA)
		w.update(resume)
		w.awaitJobs(running, jobA)
		w.keepsJobs(live, jobA)
		w.ready(jobA)
		w.awaitJobs(running, allJobs...)
	})
}
