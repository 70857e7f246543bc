// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Decide returns what to do about a set.
func Decide(o Observed) Plan {
	switch {
	case o.JobSet.DeletionTimestamp != nil:
		return Plan{} // the garbage collector takes care of it
	case !Ours(o.JobSet):
		return timeToLive(o)
	}
	o = indexed(o)
	owned := classify(o)
	st := newStatus(o)
	st.next.ReplicatedJobsStatus = asStored(owned.counts)

	var p Plan
	switch {
	case st.afterRestore(owned):
	case finishedCondition(&o.JobSet.Status) != nil:
		p = afterFinish(o, owned)
		keepEnded(o.JobSet, st.next.ReplicatedJobsStatus)
		st.closeAttempt()
	case !st.advance(owned):
		p = childWrites(o, owned, st)
	}
	p.Problems = append(p.Problems, owned.problems...)
	p.Status, p.Events = st.result()
	p.FailedJob, p.CountNodes = st.failedJob, st.countNodes
	return p
}

// advance ends the set, or moves it to its next attempt or execution, if that is due. It reports whether it did: then
// nothing else may happen until that is stored.
func (b *statusBuilder) advance(owned children) bool {
	b.followAttempt(owned)
	b.locate()
	succeeded := len(owned.failed) == 0 && successPolicyMet(b.o, owned)
	for _, policy := range []func(Observed, children) *verdict{deadlineVerdict, failureVerdict, inPlaceVerdict} {
		if v := policy(b.o, owned); v != nil && !succeeded {
			b.applyFailure(*v)
			return true
		}
	}
	b.endRestart()
	if succeeded {
		b.complete()
		return true
	}
	b.wantCause(firstFailed(owned.failureTarget), false)
	return b.recordSuspension(owned) || b.countExecution() || b.avoids || b.move() || b.forgetNodes(owned)
}

// childWrites brings the children of an unfinished set, none of whose Jobs calls for a policy, to where they should be.
func childWrites(o Observed, owned children, st *statusBuilder) Plan {
	open, inOrder := startable(o, owned.counts)
	st.setStartup(inOrder)
	st.notePlaced(owned)
	st.place(owned, open)
	p := Plan{CreateService: missingService(o), CreateClaims: missingClaims(o), Groups: st.group(owned, open)}
	var moreDeletions, moreCreations bool
	p.DeleteJobs, moreDeletions = deletions(o, slices.Concat(owned.previous, replaced(o, owned.active, open), shutOut(o, owned.active)))
	p.Backlog = backlog(o, owned)
	patched := jobPatches(o, owned, open, p.Backlog)
	p.PatchJobs, p.Resumed = patched.patches, patched.resumed
	p.CreateJobs, moreCreations = missingJobs(o, owned, open, p.Backlog+p.Resumed)
	p.More = moreDeletions || patched.more || moreCreations
	st.setSuspended(owned, patched.stillSuspended || inOrder == orderWaiting)
	p.Problems = st.setInPlaceAttempts(owned)
	st.noteReady()
	st.setEndpoints()
	st.setStartTime()
	p.RequeueAfter = sooner(sooner(sooner(timeToDeadline(o, st.next.StartTime), st.setUnschedulable()), o.Moving.After),
		st.timeToForget(owned))
	p.RequeueAfter = sooner(p.RequeueAfter, st.setPodsRefused(owned))
	p.RequeueAfter = sooner(sooner(p.RequeueAfter, p.Groups.awaitGroups(o)), o.Located.After)
	if p.Held = moreCreations || patched.held; p.Held {
		p.RequeueAfter = sooner(p.RequeueAfter, BacklogTimeout) // in case the Job controller does not take care of the Jobs that are there
	}
	if len(p.CreateJobs) == 0 && !moreCreations {
		st.endNameConflict()
		if p.nothingMissing(owned) {
			st.endCreationFailure(reasonJobsCreated, messageJobsCreated)
		}
	}
	return p
}

// sooner returns the shorter one of two times; 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Ours reports whether the set is this controller's to run. Other controllers run those that name one in managedBy.
func Ours(js *jobsetv1alpha2.JobSet) bool {
	return ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName) == jobsetv1alpha2.JobSetControllerName
}

func suspended(js *jobsetv1alpha2.JobSet) bool { return ptr.Deref(js.Spec.Suspend, false) }
