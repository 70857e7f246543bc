// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"k8s.io/utils/ptr"
)

func TestRow7_3_01_FourJobsAreCreatedAndSuspendMayBeSet(t *testing.T) {
	w := newWorld(t, released)
	w.create(testJobSet())
	w.awaitJobs(running, allJobs...)
	w.update(func(js *jobSet) { js.Spec.Suspend = ptr.To(true) })
	w.awaitJobs(suspended, allJobs...)
}

func TestRow7_3_02_CompletesWithAllJobs(t *testing.T) {
	w := newWorld(t, released)
	w.create(testJobSet())
	w.awaitJobs(running, allJobs...)
	w.complete(allJobs...)
	w.awaitCompleted()
	w.awaitCounters("b{succeeded 3} a{succeeded 1}")
}

func TestRow7_3_04_GoesOnUntilTheLastJobCompletes(t *testing.T) {
	w := newWorld(t, released)
	w.create(testJobSet())
	w.awaitJobs(running, allJobs...)
	w.complete(jobA, jobB0, jobB1)
	w.ready(jobB2)
	w.awaitCounters("b{ready 1, succeeded 2, active 1} a{succeeded 1}")
	w.staysActive()
}

func TestRow7_3_06_FailsWithoutAFailurePolicy(t *testing.T) {
	w := newWorld(t, released)
	w.create(testJobSet())
	w.awaitJobs(running, allJobs...)
	w.fail(jobB1)
	w.awaitFailed("FailedJobs")
}
