// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// A set is suspended once none of its Jobs may start pods. Until then, its attempt goes on. A suspension can be taken back
// at any time; then the Jobs themselves say in which attempt they were suspended, so that this is recorded although no
// status was written in between.

const (
	messageSuspended = "jobset is suspended"
	messageTakenBack = "jobset was resumed while its jobs were being suspended"
)

// SuspendedInAttempt is the value of the annotation ReleasedKey of Jobs that were suspended with the set.
func SuspendedInAttempt(number int32) string { return "suspended-in-attempt-" + itoa(number) }

// suspensionMark returns what the Jobs of a set are marked with when they are suspended.
func suspensionMark(js *jobsetv1alpha2.JobSet) string {
	if last := helper.CurrentAttempt(&js.Status); last != nil {
		return SuspendedInAttempt(last.Number)
	}
	return ""
}

// mayStartPods reports whether any Job of the set may start pods: it has not ended, and is neither suspended nor being
// deleted.
func mayStartPods(owned children) bool {
	starts := func(job *batchv1.Job) bool {
		return job.DeletionTimestamp == nil && !jobSuspended(job) &&
			helper.TrueJobCondition(job, batchv1.JobComplete) == nil && helper.TrueJobCondition(job, batchv1.JobFailed) == nil
	}
	return slices.ContainsFunc(owned.active, starts) || slices.ContainsFunc(owned.previous, starts)
}

// suspension notes that the set is suspended, or that no Job waits to be resumed any more.
func suspension(s state, jobsSuspended bool) changes {
	switch {
	case !suspended(s.JobSet) && jobsSuspended:
		return changes{}
	case !suspended(s.JobSet):
		return endSuspension()
	case mayStartPods(s.owned):
		return changes{premature: true}
	}
	return beginSuspension(s.Observed, messageSuspended)
}

func beginSuspension(o Observed, reason string) changes {
	c := wants(begin(jobsetv1alpha2.JobSetSuspended, reasonSuspendedJobs, messageSuspended),
		end(jobsetv1alpha2.JobSetRestarting, reasonJobSetSuspended, messageSuspended))
	c.edits = []edit{endAttempt(o, jobsetv1alpha2.OutcomeSuspended, reason)}
	return c
}

func endSuspension() changes {
	return wants(end(jobsetv1alpha2.JobSetSuspended, reasonResumeJobs, "jobset is resumed"),
		end(jobsetv1alpha2.Retried, reasonResumeJobs, "the jobset, which was retried while it was suspended, is resumed"))
}

// recordSuspension ends the attempt if any of its Jobs was suspended on account of a suspension that was taken back. That is
// stored before these Jobs are resumed: they forget it then.
func recordSuspension(s state) (c changes) {
	a := helper.RunningAttempt(s.next)
	if a == nil || !s.KeepAttempts || suspended(s.JobSet) {
		return changes{}
	}
	mark := SuspendedInAttempt(a.Number)
	marked := func(job *batchv1.Job) bool { return job.Annotations[jobsetv1alpha2.ReleasedKey] == mark }
	switch {
	case !slices.ContainsFunc(s.owned.active, marked):
		return changes{}
	case mayStartPods(s.owned):
		c.edits = []edit{endAttempt(s.Observed, jobsetv1alpha2.OutcomeSuspended, messageTakenBack)}
	default:
		c = beginSuspension(s.Observed, messageTakenBack)
		c.edits = append(c.edits, clearStartTime)
	}
	c.commits = true
	return c
}
