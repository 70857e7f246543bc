// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/policy"
)

// countJobs returns one entry per replicatedJob, in the order of the spec (docs/reference/jobset.md#counters).
func countJobs(o Observed, owned children) []jobsetv1alpha2.ReplicatedJobStatus {
	counts := make([]jobsetv1alpha2.ReplicatedJobStatus, len(o.JobSet.Spec.ReplicatedJobs))
	for i := range counts {
		counts[i].Name = o.JobSet.Spec.ReplicatedJobs[i].Name
		if stored := &o.index.stored[i]; o.index.tracksJobs {
			counts[i].JobRestarts = slices.Clone(stored.JobRestarts)
			counts[i].JobRestartsCountTowardsMax = slices.Clone(stored.JobRestartsCountTowardsMax)
		}
	}
	countOf := func(job *batchv1.Job) *jobsetv1alpha2.ReplicatedJobStatus {
		_, place := o.replicatedJob(replicatedJobOf(job))
		return &counts[place]
	}
	stops := suspended(o.JobSet) || finishedCondition(&o.JobSet.Status) != nil
	for _, job := range owned.active {
		countActive(job.Job, stops, &counts[job.place])
	}
	for _, job := range owned.previous {
		// Upstream counts no Jobs of earlier attempts, and no pods that are being deleted; but queueing systems take the quota of a
		// set back as soon as nothing of it is active, and give it to others.
		if runsPods(job) {
			countOf(job).Active++
		}
	}
	for _, job := range owned.succeeded {
		countOf(job).Succeeded++
	}
	for _, job := range owned.failed {
		countOf(job).Failed++
	}
	return counts
}

// countActive counts a Job of the current attempt. In a set that stops, pods that are being deleted run as long as they are there; in any
// other, they are replaced.
func countActive(job *batchv1.Job, stops bool, count *jobsetv1alpha2.ReplicatedJobStatus) {
	if allPodsReady(job) {
		count.Ready++
	}
	if job.Status.Active > 0 || stops && runsPods(job) {
		count.Active++
	}
	if jobSuspended(job) {
		count.Suspended++
	}
}

// asStored returns the counts by descending name: the order that clients of upstream find stored.
func asStored(counts []jobsetv1alpha2.ReplicatedJobStatus) []jobsetv1alpha2.ReplicatedJobStatus {
	sorted := slices.Clone(counts)
	slices.SortStableFunc(sorted, func(a, b jobsetv1alpha2.ReplicatedJobStatus) int { return strings.Compare(b.Name, a.Name) })
	return sorted
}

// keepEnded keeps in the counts of a finished set how it ended.
func keepEnded(s state) changes {
	return changes{edits: []edit{func(next *jobsetv1alpha2.JobSetStatus) { addEnded(s.JobSet, next.ReplicatedJobsStatus) }}}
}

// addEnded keeps, in the counts of a finished set, the Jobs that have succeeded or failed and do not exist any more, for example because
// of their own time to live: how a set ended does not change. A Job that came into being too late, and is about to be deleted, may have the
// place of one of them: no more Jobs are counted than there are replicas.
func addEnded(js *jobsetv1alpha2.JobSet, next []jobsetv1alpha2.ReplicatedJobStatus) {
	before, counts := byName(js.Status.ReplicatedJobsStatus), byName(next)
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		was, is := before[rj.Name], counts[rj.Name]
		if was == nil || is == nil {
			continue
		}
		room := helper.Replicas(rj) - is.Succeeded - is.Failed - max(is.Ready, is.Active, is.Suspended)
		succeeded := max(0, min(was.Succeeded-is.Succeeded, room))
		failed := max(0, min(was.Failed-is.Failed, room-succeeded))
		is.Succeeded, is.Failed = is.Succeeded+succeeded, is.Failed+failed
	}
}

// allPodsReady reports whether as many pods as the Job runs at a time are ready or have succeeded.
func allPodsReady(job *batchv1.Job) bool {
	wanted := ptr.Deref(job.Spec.Parallelism, 1)
	if job.Spec.Completions != nil {
		wanted = min(wanted, *job.Spec.Completions)
	}
	return job.Status.Succeeded+ptr.Deref(job.Status.Ready, 0) >= wanted
}

// tracksJobs reports whether Jobs have attempts of their own: with the feature, and in sets a single Job of which was
// restarted on request.
func tracksJobs(o Observed) bool {
	return o.Gates.RestartJob || slices.ContainsFunc(o.JobSet.Status.ReplicatedJobsStatus,
		func(count jobsetv1alpha2.ReplicatedJobStatus) bool {
			return len(count.JobRestarts) > 0
		})
}

// countJobRestarts moves single Jobs to their next attempts.
func countJobRestarts(o Observed, v verdict) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) {
		counts := byName(next.ReplicatedJobsStatus)
		for _, job := range v.Restarted {
			counting := int32(0)
			if policy.Counted(v.Action) {
				counting = 1
			}
			addJobRestarts(o, counts, job, 1, counting)
		}
	}
}

// addJobRestarts counts restarts of one Job. The arrays have one item per Job of the replicatedJob and come into being with the
// first restart that they count.
func addJobRestarts(o Observed, counts map[string]*jobsetv1alpha2.ReplicatedJobStatus, job *batchv1.Job, restarts, counting int32) {
	rj, _ := o.replicatedJob(replicatedJobOf(job))
	count, length, index := counts[rj.Name], helper.Replicas(rj), jobIndex(job)
	count.JobRestarts = withLength(count.JobRestarts, length)
	count.JobRestarts[index] += restarts
	if counting > 0 {
		count.JobRestartsCountTowardsMax = withLength(count.JobRestartsCountTowardsMax, length)
		count.JobRestartsCountTowardsMax[index] += counting
	}
}

// withLength returns counters of the length.
func withLength(counters []int32, length int32) []int32 {
	if len(counters) == int(length) {
		return counters
	}
	next := make([]int32, length)
	copy(next, counters)
	return next
}
