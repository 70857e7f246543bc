// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/policy"
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
	if asks := asksFirst(o); !asks.Empty() {
		return Plan{Asks: asks}
	}
	owned := classify(o)
	asks, awaitsDomains := asksOfJobs(o, owned)
	if !asks.Empty() {
		return Plan{Asks: asks}
	}
	p := decide(o, owned)
	if p.Asks.Empty() {
		p.AwaitsDomains, p.DespiteQueue = awaitsDomains, runsDespiteQueue(o.JobSet)
	}
	return p
}

// decide decides about a set that this controller runs. The plan asks for what only the decision itself shows to matter.
func decide(o Observed, owned children) (p Plan) {
	b := newStatus(o, owned)
	b.next.ReplicatedJobsStatus = asStored(owned.counts)
	switch {
	case b.afterRestore():
	case finishedCondition(&o.JobSet.Status) != nil:
		p = afterFinish(o, owned)
		keepEnded(o.JobSet, b.next.ReplicatedJobsStatus)
		b.run(closeAttempt)
	case !b.advance() && b.asks.Empty():
		p = b.childWrites()
	}
	if !b.asks.Empty() {
		return Plan{Asks: b.asks}
	}
	p.Problems = slices.Concat(b.problems, owned.problems)
	p.Status, p.Events = b.result()
	return p
}

// advance ends the set, or moves it to its next attempt or execution, if that is due. It reports whether it did: then
// nothing else may happen until that is stored.
func (b *statusBuilder) advance() bool {
	if b.KeepAttempts && !suspended(b.JobSet) {
		b.run(beginAttempt, avoidNodes, noteCreated, noteReady)
	}
	b.run(locate)
	succeeded := len(b.owned.failed) == 0 && policy.Succeeded(b.JobSet, b.owned.succeeded)
	for _, verdictOf := range []func(Observed, children) *policy.Verdict{deadlineVerdict, failureVerdict, inPlaceVerdict} {
		if v := verdictOf(b.Observed, b.owned); v != nil && !succeeded {
			b.run(verdict{v}.steps()...)
			return true
		}
	}
	b.run(endRestart)
	if succeeded {
		b.run(complete)
		return true
	}
	return b.run(causeOfTarget, recordSuspension, countExecution, storeAvoided, unpin, moveJob, forgetNodes)
}

// childWrites brings the children of an unfinished set, none of whose Jobs calls for a policy, to where they should be.
func (b *statusBuilder) childWrites() Plan {
	o, owned := b.Observed, b.owned
	order, forTurn := awaitTurn(o, owned.counts)
	groups, forGroup := awaitGroup(o, owned)
	w := union(o, awaitDependencies(o, owned.counts), forTurn, awaitDomain(o, owned), forGroup)
	b.fold(startup(o, order))
	b.run(notePlaced)
	b.fold(placement(b.state, w))
	p := Plan{CreateService: missingService(o), CreateClaims: missingClaims(o), Groups: groups}
	var moreDeletions, moreCreations bool
	p.DeleteJobs, moreDeletions = deletions(o, slices.Concat(owned.previous, replaced(o, owned.active, w), shutOut(o, owned.active)))
	p.Backlog = backlog(o, owned)
	patched := jobPatches(o, owned, w, p.Backlog)
	p.PatchJobs, p.Resumed = patched.patches, patched.resumed
	p.CreateJobs, moreCreations = missingJobs(o, owned, w, p.Backlog+p.Resumed)
	p.More = moreDeletions || patched.more || moreCreations
	b.fold(suspension(b.state, patched.stillSuspended || order == orderWaiting))
	b.run(followInPlace, noteReady)
	b.fold(endpoints(o))
	b.fold(changes{edits: []edit{followClock(o)}})
	p.ActsAfter = timeToDeadline(o, b.next.StartTime)
	p.RequeueAfter = hostplan.Sooner(p.ActsAfter, b.fold(unschedulable(o)), o.Moving.Value().After,
		timeToForget(b.state), b.fold(podsRefused(o, owned)), p.Groups.After, o.Located.Value().After)
	if p.BacklogFull = moreCreations || patched.backlogFull; p.BacklogFull {
		// In case the Job controller does not take care of the Jobs that exist.
		p.RequeueAfter = hostplan.Sooner(p.RequeueAfter, BacklogTimeout)
	}
	if len(p.CreateJobs) == 0 && !moreCreations {
		b.fold(wants(endNameConflict()))
		if p.nothingMissing(owned) {
			b.fold(wants(end(jobsetv1alpha2.JobCreationFailure, reasonJobsCreated, messageJobsCreated)))
		}
	}
	return p
}

// Ours reports whether the set is this controller's to run. Other controllers run those that name one in managedBy.
func Ours(js *jobsetv1alpha2.JobSet) bool {
	return ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName) == jobsetv1alpha2.JobSetControllerName
}

func suspended(js *jobsetv1alpha2.JobSet) bool { return ptr.Deref(js.Spec.Suspend, false) }
