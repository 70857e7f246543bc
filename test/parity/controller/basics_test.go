// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"k8s.io/utils/ptr"
)

func TestRow7_3_01_FourJobsAreCreatedAndSuspendMayBeSet(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet())
	e.awaitJobs(running, allJobs...)
	e.update(func(js *jobSet) { js.Spec.Suspend = ptr.To(true) })
	e.awaitJobs(suspended, allJobs...)
}

func TestRow7_3_02_CompletesWithAllJobs(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet())
	e.awaitJobs(running, allJobs...)
	e.complete(allJobs...)
	e.awaitCompleted()
	e.awaitCounters("b{succeeded 3} a{succeeded 1}")
}

func TestRow7_3_04_GoesOnUntilTheLastJobCompletes(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet())
	e.awaitJobs(running, allJobs...)
	e.complete(jobA, jobB0, jobB1)
	e.ready(jobB2)
	e.awaitCounters("b{ready 1, succeeded 2, active 1} a{succeeded 1}")
	e.staysActive()
}

func TestRow7_3_06_FailsWithoutAFailurePolicy(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet())
	e.awaitJobs(running, allJobs...)
	e.fail(jobB1)
	e.awaitFailed("FailedJobs")
}
