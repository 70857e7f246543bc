// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// Most changes of a status are counts of Jobs on their way from one state that matters to the next: 17 of 400 Jobs ready,
// then 18. Writing each of them costs more than the Jobs themselves. They wait a while for others, and are written together.

const (
	// countsAfter is how old counts in the status may be, and how late the events that come with a status.
	countsAfter = 5 * time.Second
	// urgentAfter is how old counts may be that a queueing system gives quota back by.
	urgentAfter = time.Second
	// timesAfter is how long the time at which all Jobs were created waits for anything else to write.
	timesAfter = 15 * time.Second
	// manyReplicatedJobs is the number of replicatedJobs from which on counts wait longer, in proportion to their number. The status
	// of such a set is large, and a write costs the API server as much as the set is large.
	manyReplicatedJobs = 100
)

// Deferred is what was seen while the status waits. A controller that has just started has deferred nothing, and sees it a
// little later.
type Deferred struct {
	// UID is the UID of the set.
	UID types.UID
	// Counts is since when counts wait, and Times since when anything does; zero if nothing does.
	Counts, Times time.Time
	// Attempt is the number of the attempt that the times are about.
	Attempt int32
	// CreateTime and ReadyTime are when all Jobs of the attempt were there, and up.
	CreateTime, ReadyTime *metav1.MicroTime
}

// deferStatus returns for how long the next status may wait, and what to remember meanwhile. The time is 0 for a status that
// is to be written now: a client may wait for it, since it differs from the stored one in more than counts and times, or in
// a count that completes something; or it has waited long enough.
func deferStatus(o Observed, next Outcome) (Deferred, time.Duration) {
	if next.Status == nil || !mayWait(o, next.Status) {
		return Deferred{}, 0
	}
	now, before := o.Now.Time, o.Deferred
	if before.UID != o.JobSet.UID {
		before = Deferred{}
	}
	waits := Deferred{UID: o.JobSet.UID, Times: earliest(before.Times, now)}
	left := sizeFactor(o.JobSet)*timesAfter - now.Sub(waits.Times)
	if countsDiffer(&o.JobSet.Status, next.Status) || len(next.Events) > 0 {
		waits.Counts = earliest(before.Counts, now)
		left = min(left, countsMayWait(o.JobSet, next.Status)-now.Sub(waits.Counts))
	}
	if a := helper.RunningAttempt(next.Status); a != nil {
		waits.Attempt, waits.CreateTime, waits.ReadyTime = a.Number, a.CreateTime, a.ReadyTime
	}
	if left <= 0 {
		return Deferred{}, 0
	}
	return waits, left
}

func earliest(before, now time.Time) time.Time {
	if before.IsZero() {
		return now
	}
	return before
}

func mayWait(o Observed, next *jobsetv1alpha2.JobSetStatus) bool {
	stored := &o.JobSet.Status
	was, is := stored.ReplicatedJobsStatus, next.ReplicatedJobsStatus
	// One replicatedJob of very many completes nothing that anybody waits for.
	many := len(o.JobSet.Spec.ReplicatedJobs) > manyReplicatedJobs
	due := !many && completes(o.JobSet, was, is) || (many || stoppable(o.JobSet)) && completesSet(o.JobSet, was, is)
	rest := withoutProgress(next)
	domains.Unlocate(rest, stored)
	return !due && equality.Semantic.DeepEqual(withoutProgress(stored), rest)
}

// countsMayWait returns how old counts in the status may be. Queueing systems reuse what a Job needed that has succeeded,
// and must not take one for running or ready that is not.
func countsMayWait(js *jobsetv1alpha2.JobSet, next *jobsetv1alpha2.JobSetStatus) time.Duration {
	if !stoppable(js) {
		return sizeFactor(js) * countsAfter
	}
	stored := byName(js.Status.ReplicatedJobsStatus)
	for i := range next.ReplicatedJobsStatus {
		is := &next.ReplicatedJobsStatus[i]
		was := entryOf(stored, is.Name)
		if is.Succeeded != was.Succeeded || is.Ready < was.Ready || is.Active < was.Active {
			return sizeFactor(js) * urgentAfter
		}
	}
	return sizeFactor(js) * countsAfter
}

// sizeFactor is by how much longer the status of a large set waits.
func sizeFactor(js *jobsetv1alpha2.JobSet) time.Duration {
	return max(1, time.Duration(len(js.Spec.ReplicatedJobs))/manyReplicatedJobs)
}

// stoppable reports whether another controller, like a queueing system, is known to suspend and resume the set. Not all queueing
// systems leave a mark on it, but all suspend it first.
func stoppable(js *jobsetv1alpha2.JobSet) bool {
	return queued(js) || suspended(js) || meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetSuspended) != nil
}

// completes reports whether a replicatedJob has come to a state that others may wait for: all of its Jobs are ready, all have
// succeeded, all are suspended, or none is active while the set is suspended; or that another of its Jobs has failed.
func completes(js *jobsetv1alpha2.JobSet, before, after []jobsetv1alpha2.ReplicatedJobStatus) bool {
	stored, next := byName(before), byName(after)
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		was, is := entryOf(stored, rj.Name), entryOf(next, rj.Name)
		all := helper.Replicas(rj)
		if is.Ready == all && was.Ready != all ||
			is.Succeeded == all && was.Succeeded != all ||
			is.Suspended == all && was.Suspended != all ||
			is.Active == 0 && was.Active != 0 && suspended(js) ||
			is.Failed > was.Failed {
			return true
		}
	}
	return false
}

// completesSet reports whether the set as a whole has come to a state that queueing systems wait for: all of its Jobs are ready or
// have succeeded; or the first or the last of its Jobs is active, by which they know whether the set needs its quota.
func completesSet(js *jobsetv1alpha2.JobSet, before, after []jobsetv1alpha2.ReplicatedJobStatus) bool {
	was, is := sumUp(before), sumUp(after)
	all := helper.TotalReplicas(js)
	return is.up == all && was.up != all || (is.active > 0) != (was.active > 0)
}

// sums are the Jobs of a set that are active, and those that are up: ready or succeeded.
type sums struct{ active, up int64 }

func sumUp(counts []jobsetv1alpha2.ReplicatedJobStatus) (s sums) {
	for i := range counts {
		s.active += int64(counts[i].Active)
		s.up += int64(counts[i].Ready) + int64(counts[i].Succeeded)
	}
	return s
}

// countsDiffer reports whether more than the time of creation has changed between statuses that differ in progress only.
func countsDiffer(stored, next *jobsetv1alpha2.JobSetStatus) bool {
	if !equality.Semantic.DeepEqual(stored.ReplicatedJobsStatus, next.ReplicatedJobsStatus) {
		return true
	}
	was, is := helper.RunningAttempt(stored), helper.RunningAttempt(next)
	return was != nil && is != nil && !equality.Semantic.DeepEqual(was.ReadyTime, is.ReadyTime)
}

// withoutProgress returns a status without what may wait.
func withoutProgress(status *jobsetv1alpha2.JobSetStatus) *jobsetv1alpha2.JobSetStatus {
	rest := status.DeepCopy()
	for i := range rest.ReplicatedJobsStatus {
		count := &rest.ReplicatedJobsStatus[i]
		count.Ready, count.Succeeded, count.Failed, count.Active, count.Suspended = 0, 0, 0, 0, 0
	}
	if a := helper.RunningAttempt(rest); a != nil {
		a.CreateTime, a.ReadyTime = nil, nil
	}
	domains.ForEach(rest.Placement, func(at *jobsetv1alpha2.JobPlacement) { at.Ready = false })
	// How many children are refused or wait, and in which words, may change with each try. That they do is stored at once.
	for _, trouble := range []string{jobsetv1alpha2.JobCreationFailure, jobsetv1alpha2.PodCreationFailure, jobsetv1alpha2.PodsUnschedulable} {
		if c := meta.FindStatusCondition(rest.Conditions, trouble); c != nil {
			c.Reason, c.Message = "", ""
		}
	}
	// Who writes addresses is worth no write of its own for a while: names resolve in any case.
	meta.RemoveStatusCondition(&rest.Conditions, jobsetv1alpha2.ServiceEndpointsByCluster)
	return rest
}
