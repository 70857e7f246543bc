// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// setSuspended notes that the set is suspended, or that no Job waits to be resumed any more.
func (b *statusBuilder) setSuspended(owned children, stillSuspended bool) {
	switch {
	case !suspended(b.o.JobSet):
		if !stillSuspended {
			b.endSuspension()
		}
	case mayStartPods(owned):
		b.pending = true
	default:
		b.beginSuspension(messageSuspended)
	}
}

func (b *statusBuilder) beginSuspension(reason string) {
	b.set(jobsetv1alpha2.JobSetSuspended, metav1.ConditionTrue, reasonSuspendedJobs, messageSuspended)
	b.set(jobsetv1alpha2.JobSetRestarting, metav1.ConditionFalse, reasonJobSetSuspended, messageSuspended)
	b.endAttempt(jobsetv1alpha2.OutcomeSuspended, reason)
}

func (b *statusBuilder) endSuspension() {
	b.set(jobsetv1alpha2.JobSetSuspended, metav1.ConditionFalse, reasonResumeJobs, "jobset is resumed")
	b.set(jobsetv1alpha2.Retried, metav1.ConditionFalse, reasonResumeJobs, "the jobset, which was retried while it was suspended, is resumed")
}

// recordSuspension ends the attempt if any of its Jobs was suspended on account of a suspension that was taken back. That is
// stored before these Jobs are resumed: they forget it then.
func (b *statusBuilder) recordSuspension(owned children) bool {
	a := helper.RunningAttempt(b.next)
	if a == nil || !b.o.KeepAttempts || suspended(b.o.JobSet) {
		return false
	}
	mark := SuspendedInAttempt(a.Number)
	if !slices.ContainsFunc(owned.active, func(job *batchv1.Job) bool { return job.Annotations[jobsetv1alpha2.ReleasedKey] == mark }) {
		return false
	}
	if mayStartPods(owned) {
		b.endAttempt(jobsetv1alpha2.OutcomeSuspended, messageTakenBack)
	} else {
		b.beginSuspension(messageTakenBack)
		b.next.StartTime = nil
	}
	return true
}
