// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// This file holds the rules about how a suspension begins, and about one that is taken back before anybody stored it.

const (
	suspendedFirst = "a set is suspended once none of its Jobs has pods or may start some"
	recordedFirst  = "a Job is resumed after it is stored that its attempt ended with its suspension"
)

// mayStartPods reports whether any Job of the set may still start pods.
func mayStartPods(o plan.Observed) bool {
	return slices.ContainsFunc(append(having(o, active), having(o, previous)...), func(job *batchv1.Job) bool {
		return !ended(job) && !jobIsSuspended(job) && job.DeletionTimestamp == nil
	})
}

// stillRuns reports whether any Job of the set may still start pods, or has some.
func stillRuns(o plan.Observed) bool {
	return mayStartPods(o) || slices.ContainsFunc(append(having(o, active), having(o, previous)...), func(job *batchv1.Job) bool {
		return !ended(job) && hasPods(job)
	})
}

func suspendedRight(d decision) string {
	began := conditionIs(d.after, jobsetv1alpha2.JobSetSuspended) && !conditionIs(d.before, jobsetv1alpha2.JobSetSuspended)
	switch {
	case began && stillRuns(d.Observed):
		return "it is said to be suspended while Jobs have pods or may start some"
	case began && !isSuspended(d.JobSet) && !takenBack(d):
		return "it is said to be suspended although nobody wants that"
	}
	return ""
}

// stoppedIn is how Jobs are marked that are suspended with the set.
func stoppedIn(status *jobsetv1alpha2.JobSetStatus) string {
	if n := len(status.Attempts); n > 0 {
		return fmt.Sprintf("suspended-in-attempt-%d", status.Attempts[n-1].Number)
	}
	return ""
}

// takenBack reports whether Jobs were suspended with the set in the attempt that runs, although the set is not suspended any
// more.
func takenBack(d decision) bool {
	if d.ruling != nil || isSuspended(d.JobSet) || finished(d.before) || inAttempt(d.before) == nil || d.JobSet.DeletionTimestamp != nil || d.JobSet.Spec.ManagedBy != nil {
		return false
	}
	return slices.ContainsFunc(having(d.Observed, active), func(job *batchv1.Job) bool {
		return job.Annotations[jobsetv1alpha2.ReleasedKey] == stoppedIn(d.before)
	})
}

// interrupts reports whether the decision ends an attempt on account of a suspension that was taken back.
func (d decision) interrupts() bool {
	return inAttempt(d.after) == nil && !finished(d.after) && takenBack(d)
}

// checkRecorded checks that a Job is resumed only after the attempt has ended in which the controller suspended it.
func (r *invariants) checkRecorded(js *jobsetv1alpha2.JobSet, job *batchv1.Job, f *facts, suspend bool) {
	a := inAttempt(&js.Status)
	if suspend {
		if f.stoppedIn = 0; a != nil {
			f.stoppedIn = a.Number
		}
		return
	}
	if a != nil && a.Number == f.stoppedIn {
		r.Fail(recordedFirst, "job %s in attempt %d", job.Name, a.Number)
	}
	f.stoppedIn = 0
}
