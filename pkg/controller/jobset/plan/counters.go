// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// countJobs returns one entry per replicatedJob (spec/jobset.md §5.5), by descending name: the order that clients of
// upstream find stored.
func countJobs(o Observed, kids children) []jobsetv1alpha2.ReplicatedJobStatus {
	counts := make([]jobsetv1alpha2.ReplicatedJobStatus, 0, len(o.JobSet.Spec.ReplicatedJobs))
	for _, rj := range o.JobSet.Spec.ReplicatedJobs {
		counts = append(counts, countReplicatedJob(o, kids, rj.Name))
	}
	slices.SortStableFunc(counts, func(a, b jobsetv1alpha2.ReplicatedJobStatus) int { return strings.Compare(b.Name, a.Name) })
	return counts
}

func countReplicatedJob(o Observed, kids children, name string) jobsetv1alpha2.ReplicatedJobStatus {
	count := jobsetv1alpha2.ReplicatedJobStatus{Name: name}
	for _, job := range kids.active {
		if replicatedJobOf(job) != name {
			continue
		}
		if allPodsReady(job) {
			count.Ready++
		}
		if job.Status.Active > 0 {
			count.Active++
		}
		if jobSuspended(job) {
			count.Suspended++
		}
	}
	if suspended(o.JobSet) {
		count.Active += stillActive(kids.previous, name)
	}
	count.Succeeded = countOf(kids.succeeded, name)
	count.Failed = countOf(kids.failed, name)
	if stored := replicatedJobStatus(o.JobSet.Status.ReplicatedJobsStatus, name); tracksJobs(o) {
		count.JobRestarts = slices.Clone(stored.JobRestarts)
		count.JobRestartsCountTowardsMax = slices.Clone(stored.JobRestartsCountTowardsMax)
	}
	return count
}

// stillActive counts the Jobs of earlier attempts that have pods. Upstream counts none; but queueing systems take the
// quota of a suspended set back as soon as nothing of it is active, and give it to others.
func stillActive(previous []*batchv1.Job, replicatedJob string) (n int32) {
	for _, job := range previous {
		if replicatedJobOf(job) == replicatedJob && job.Status.Active > 0 {
			n++
		}
	}
	return n
}

func countOf(jobs []*batchv1.Job, replicatedJob string) (n int32) {
	for _, job := range jobs {
		if replicatedJobOf(job) == replicatedJob {
			n++
		}
	}
	return n
}

// allPodsReady tells whether as many pods as the Job runs at a time are ready or have succeeded.
func allPodsReady(job *batchv1.Job) bool {
	wanted := ptr.Deref(job.Spec.Parallelism, 1)
	if job.Spec.Completions != nil {
		wanted = min(wanted, *job.Spec.Completions)
	}
	return job.Status.Succeeded+ptr.Deref(job.Status.Ready, 0) >= wanted
}

// replicatedJobStatus returns the entry of the name, or a zero one.
func replicatedJobStatus(counts []jobsetv1alpha2.ReplicatedJobStatus, name string) jobsetv1alpha2.ReplicatedJobStatus {
	for _, count := range counts {
		if count.Name == name {
			return count
		}
	}
	return jobsetv1alpha2.ReplicatedJobStatus{Name: name}
}

// tracksJobs tells whether Jobs have attempts of their own: with the feature, and in sets a single Job of which was
// restarted on request.
func tracksJobs(o Observed) bool {
	return o.Gates.RestartJob || slices.ContainsFunc(o.JobSet.Status.ReplicatedJobsStatus, func(count jobsetv1alpha2.ReplicatedJobStatus) bool {
		return len(count.JobRestarts) > 0
	})
}

// jobRestarts returns how often a single Job was restarted.
func jobRestarts(status *jobsetv1alpha2.JobSetStatus, replicatedJob string, index int32) int32 {
	restarts := replicatedJobStatus(status.ReplicatedJobsStatus, replicatedJob).JobRestarts
	if int(index) >= len(restarts) {
		return 0
	}
	return restarts[index]
}

func replicas(rj *jobsetv1alpha2.ReplicatedJob) int32 { return ptr.Deref(rj.Replicas, 1) }

func allReplicas(js *jobsetv1alpha2.JobSet) (n int32) {
	for i := range js.Spec.ReplicatedJobs {
		n += replicas(&js.Spec.ReplicatedJobs[i])
	}
	return n
}
