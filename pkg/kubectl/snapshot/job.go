// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// The states of a Job, in the order in which they are looked for.
const (
	JobTerminating = "Terminating" // it is being deleted
	JobOutdated    = "Outdated"    // it belongs to an earlier attempt and is about to be deleted
	JobComplete    = "Complete"    // it succeeded
	JobFailed      = "Failed"      // it failed, or is bound to
	JobSuspended   = "Suspended"   // spec.suspend is true
	JobReady       = "Ready"       // its pods are ready or have succeeded
	JobStarting    = "Starting"    // it has pods that are not ready
	JobPending     = "Pending"     // it has no pods
)

// JobState is what a Job of the set does.
func (s *Set) JobState(job *batchv1.Job) string { return jobState(job, s.Outdated(job)) }

// jobState is what a Job does, which may belong to an earlier attempt.
func jobState(job *batchv1.Job, outdated bool) string {
	switch {
	case job.DeletionTimestamp != nil:
		return JobTerminating
	case outdated:
		return JobOutdated
	case helper.TrueJobCondition(job, batchv1.JobComplete) != nil, helper.TrueJobCondition(job, batchv1.JobSuccessCriteriaMet) != nil:
		return JobComplete
	case helper.TrueJobCondition(job, batchv1.JobFailed) != nil, helper.TrueJobCondition(job, batchv1.JobFailureTarget) != nil:
		return JobFailed
	case ptr.Deref(job.Spec.Suspend, false):
		return JobSuspended
	case job.Status.Succeeded+ptr.Deref(job.Status.Ready, 0) >= JobSize(job):
		return JobReady
	case job.Status.Active > 0:
		return JobStarting
	}
	return JobPending
}

// JobSize is the number of pods that a Job has when all of them run.
func JobSize(job *batchv1.Job) int32 {
	parallelism := ptr.Deref(job.Spec.Parallelism, 1)
	if job.Spec.Completions == nil {
		return parallelism
	}
	return min(parallelism, *job.Spec.Completions)
}

// Outdated reports whether a Job was created before the last restart of the set or of the Job.
func (s *Set) Outdated(job *batchv1.Job) bool {
	if restarts := number(job.Labels[jobsetv1alpha2.RestartsKey]); restarts >= 0 && restarts < int(s.JobSet.Status.Restarts) {
		return true
	}
	return max(number(job.Labels[jobsetv1alpha2.JobRestartAttemptKey]), 0) < s.JobRestarts(ReplicatedJob(job), JobIndex(job))
}

// JobRestarts is how often the one Job was restarted, apart from restarts of the whole set.
func (s *Set) JobRestarts(replicatedJob string, index int) int {
	for i := range s.JobSet.Status.ReplicatedJobsStatus {
		status := &s.JobSet.Status.ReplicatedJobsStatus[i]
		if status.Name == replicatedJob && index >= 0 && index < len(status.JobRestarts) {
			return int(status.JobRestarts[index])
		}
	}
	return 0
}
