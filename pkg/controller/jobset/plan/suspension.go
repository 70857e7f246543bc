// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// A set is suspended once none of its Jobs may start pods, and none has any. Until then, its attempt goes on. A suspension
// can be taken back at any time; then the Jobs themselves say in which attempt they were suspended, so that this is recorded
// although no status was written in between.

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
	return owned.anyActive(mayRun) || slices.ContainsFunc(owned.previous, mayRun)
}

// stillRuns reports whether any Job of the set may start pods, or has pods that have not ended.
func stillRuns(owned children) bool {
	return mayStartPods(owned) || owned.anyActive(runsPods) || slices.ContainsFunc(owned.previous, runsPods)
}

// runsPods reports whether a Job has pods that have not ended. Those that are being deleted are among them.
func runsPods(job *batchv1.Job) bool {
	return !jobEnded(job) && job.Status.Active+ptr.Deref(job.Status.Terminating, 0) > 0
}

func jobEnded(job *batchv1.Job) bool {
	return helper.TrueJobCondition(job, batchv1.JobComplete) != nil || helper.TrueJobCondition(job, batchv1.JobFailed) != nil
}

// noteSuspension notes that the set is suspended, or that it runs.
func noteSuspension(w work) changes {
	order, _ := orderOf(w.state)
	return suspension(w.state, w.toResume > 0 || order == orderWaiting)
}

// suspension notes that the set is suspended, or that no Job waits to be resumed any more.
func suspension(s state, jobsSuspended bool) changes {
	switch {
	case !suspended(s.JobSet) && jobsSuspended:
		return changes{}
	case !suspended(s.JobSet):
		return endSuspension()
	case stillRuns(s.owned):
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
	case !s.owned.anyActive(marked):
		return changes{}
	case mayStartPods(s.owned):
		c.edits = []edit{endAttempt(s.Observed, jobsetv1alpha2.OutcomeSuspended, messageTakenBack)}
	case stillRuns(s.owned): // all Jobs were suspended, but the set never was
		c.edits = []edit{endAttempt(s.Observed, jobsetv1alpha2.OutcomeSuspended, messageTakenBack), clearStartTime}
	default:
		c = beginSuspension(s.Observed, messageTakenBack)
		c.edits = append(c.edits, clearStartTime)
	}
	c.commits = true
	return c
}
