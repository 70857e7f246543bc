// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// maxChanges is how many Jobs a plan creates, changes and deletes at most, each, whatever the spec says. So the memory and
	// the time that one pass takes are bounded, and a set of many Jobs does not keep a worker from all others.
	maxChanges = 2000
	// keysPerChange is how many labels and annotations a change may carry before it counts as several.
	keysPerChange = 200
	// MaxBacklog is how many Jobs of a set wait for the cluster's Job controller at most. It takes the Jobs of all users in the
	// order of their creation, so that those of other sets wait for no more than these.
	MaxBacklog = 500
	// BacklogTimeout is how long a new Job counts as waiting. Resumed Jobs count as long, while the Job controller takes
	// care of none of them. If the Job controller takes care of no Job, Jobs are created and resumed slowly.
	BacklogTimeout = time.Minute
)

// change is something that is due for one Job. Weight is how many changes it counts for.
type change[T any] struct {
	what   T
	weight int
}

// weightOf is what a change counts for that carries so many labels and annotations: at most as much as all changes of a plan, so
// that it can be made.
func weightOf(keys, total int) int { return min(1+keys/keysPerChange, total) }

// bounded returns the first changes, at most so many, which count for no more than total together, and whether there are more.
func bounded[T any](due iter.Seq[change[T]], most, total int) (first []T, more bool) {
	left := total
	for c := range due {
		if c.weight > left || len(first) >= most {
			return first, true
		}
		first, left = append(first, c.what), left-c.weight
	}
	return first, false
}

// rotated returns the positions of so many Jobs in order, from any of them on if they are more than most, which are too
// many for one plan: if those at the beginning are refused, others have their turn in the next pass. Where it begins
// follows from the time.
func rotated(o Observed, n, most int) iter.Seq[int] {
	begin := 0
	if n > most {
		spread := fnv.New64a() // times that are close to each other lead to positions that are not
		fmt.Fprint(spread, o.Now.UnixNano())
		begin = int(spread.Sum64() % uint64(n))
	}
	return func(yield func(int) bool) {
		for i := range n {
			if !yield((begin + i) % n) {
				return
			}
		}
	}
}

// deleteJobs deletes Jobs of earlier attempts, and those that are created once more.
func deleteJobs(w work) changes {
	due := slices.Concat(w.owned.previous, replaced(w.Observed, w.owned.active, w.waits), shutOut(w.Observed, w.owned.active))
	refs, more := deletions(w.Observed, due)
	return changes{plan: Plan{DeleteJobs: refs, More: more}}
}

// deletions returns the Jobs that are to be deleted and are not yet, and whether there are more of them.
func deletions(o Observed, jobs []*batchv1.Job) (refs []JobRef, more bool) {
	return bounded(func(yield func(change[JobRef]) bool) {
		for i := range rotated(o, len(jobs), maxChanges) {
			if job := jobs[i]; job.DeletionTimestamp == nil && !yield(change[JobRef]{refTo(job), 1}) {
				return
			}
		}
	}, maxChanges, maxChanges)
}

// maxBacklog returns how many Jobs of the set may wait for the Job controller.
func (o *Observed) maxBacklog() int {
	if o.MaxBacklog > 0 {
		return min(o.MaxBacklog, MaxBacklog)
	}
	return MaxBacklog
}

// backlog returns the number of Jobs that the Job controller has not taken care of yet.
func backlog(o Observed, owned children) (n int) {
	for _, job := range owned.active {
		if job.DeletionTimestamp == nil && job.Status.StartTime == nil && (waitsNew(&o, job.Job) || waitsResumed(&o, job.Job)) &&
			!managedElsewhere(&o, job) {
			n++
		}
	}
	return n
}

// waitsNew reports whether the Job controller has not seen a Job since its creation.
func waitsNew(o *Observed, job *batchv1.Job) bool {
	return len(job.Status.Conditions) == 0 && o.Now.Sub(job.CreationTimestamp.Time) < BacklogTimeout
}

// waitsResumed reports whether the Job controller has not seen a Job since it was resumed. It gives such a Job a start time.
func waitsResumed(o *Observed, job *batchv1.Job) bool {
	return !o.Stalled && !jobSuspended(job) && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
	})
}

// managedElsewhere returns whether another controller than that of the cluster takes care of a Job.
func managedElsewhere(o *Observed, job child) bool {
	return ptr.Deref(o.JobSet.Spec.ReplicatedJobs[job.place].Template.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName
}
