// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// This file holds the rules about what is stored later than it is seen. Queueing systems read the counts: they give quota
// back when nothing is active, and wait until everything is up.

const refusalsTold = "a condition says that children are refused as long as they are"

const queuesWait = "what queueing systems wait for is stored in time"

// heldBack checks a status that is not stored for some time.
func (r *invariants) heldBack(o plan.Observed, wait time.Duration) {
	js := o.JobSet
	stored, seen := sumOf(js.Status.ReplicatedJobsStatus), sumOf(counted(o))
	var all int32
	for i := range js.Spec.ReplicatedJobs {
		all += *js.Spec.ReplicatedJobs[i].Replicas
	}
	switch {
	case !isSuspended(js) && setCondition(&js.Status, jobsetv1alpha2.JobSetSuspended) == nil:
		return // it was never suspended
	case seen.up == all && stored.up != all:
		r.Fail(queuesWait, "all %d Jobs are up, %d were", all, stored.up)
	case (seen.active > 0) != (stored.active > 0):
		r.Fail(queuesWait, "%d Jobs are active, %d were", seen.active, stored.active)
	case seen.succeeded != stored.succeeded && wait > time.Second:
		r.Fail(queuesWait, "%d Jobs have succeeded, %d had, and that waits for %s", seen.succeeded, stored.succeeded, wait)
	}
}

// refusalSound checks that the condition about refused children begins only with a refusal, and in time.
func (r *invariants) refusalSound(o plan.Observed, results plan.Results, out plan.Outcome) {
	const name = jobsetv1alpha2.JobCreationFailure
	was, next := conditionIs(&o.JobSet.Status, name), &o.JobSet.Status
	if out.Status != nil {
		next = out.Status
	}
	is := conditionIs(next, name)
	decided := slices.ContainsFunc(results.Refusals, func(refusal plan.Refusal) bool { return !refusal.MayPass })
	switch {
	case is && !was && len(results.Refusals) == 0:
		r.Fail(refusalsTold, "nothing was refused")
	case decided && !is:
		r.Fail(refusalsTold, "%v", results.Refusals)
	}
	r.Seen["refusals of Jobs told"] += int(one(is && !was))
	r.Seen["refusals of Jobs that are over"] += int(one(was && !is && !finished(next)))
}

type sums struct{ active, up, succeeded int32 }

// counted are the counts of a set as they should be.
func counted(o plan.Observed) (counts []jobsetv1alpha2.ReplicatedJobStatus) {
	for i := range o.JobSet.Spec.ReplicatedJobs {
		rj := &o.JobSet.Spec.ReplicatedJobs[i]
		counts = append(counts, withEnded(&o.JobSet.Status, rj, count(o, rj.Name)))
	}
	return counts
}

func sumOf(counts []jobsetv1alpha2.ReplicatedJobStatus) (s sums) {
	for _, c := range counts {
		s.active += c.Active
		s.up += c.Ready + c.Succeeded
		s.succeeded += c.Succeeded
	}
	return s
}

// withEnded adds Jobs of a finished set that have ended and do not exist any more, if no other Jobs have their places.
func withEnded(stored *jobsetv1alpha2.JobSetStatus, rj *jobsetv1alpha2.ReplicatedJob, counts jobsetv1alpha2.ReplicatedJobStatus) jobsetv1alpha2.ReplicatedJobStatus {
	before := countersOf(stored, rj.Name)
	free := func() bool {
		return finished(stored) && counts.Succeeded+counts.Failed+max(counts.Ready, counts.Active, counts.Suspended) < *rj.Replicas
	}
	for counts.Succeeded < before.Succeeded && free() {
		counts.Succeeded++
	}
	for counts.Failed < before.Failed && free() {
		counts.Failed++
	}
	return counts
}
