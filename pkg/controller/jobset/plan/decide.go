// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/policy"
)

// Decide returns what to do about a set.
func Decide(o Observed) Plan {
	switch {
	case o.JobSet.DeletionTimestamp != nil:
		return Plan{} // the garbage collector takes care of it
	case !ManagedHere(o.JobSet):
		return timeToLive(o)
	}
	o = indexed(o)
	if asks := asksFirst(o); !asks.Empty() {
		return Plan{Asks: asks}
	}
	s, _ := run(state{Observed: o, owned: classify(o)}, noteQueue, askFailureInPlace, askDomains, askLocated, askMoves)
	if s.plan.Asks.Empty() {
		s.draft = newDraft(s)
		s = decide(s)
	}
	if !s.plan.Asks.Empty() {
		return Plan{Asks: s.plan.Asks}
	}
	p := s.plan
	p.Status, p.Events, p.Problems = s.result(o.JobSet), s.events, slices.Concat(p.Problems, s.owned.problems)
	return p
}

// decide decides about a set that this controller runs. The plan asks for what only the decision itself shows to matter.
func decide(s state) state {
	s, over := afterRestore(s)
	switch {
	case over:
	case finishedCondition(&s.JobSet.Status) != nil:
		s, _ = run(s, removeRest, keepEnded, closeAttempt)
	default:
		if s, over = advance(s); !over && s.plan.Asks.Empty() {
			s = bringChildren(s)
		}
	}
	return s
}

// policies are asked in this order whether the set ends or restarts. The first verdict counts.
func policies() []func(Observed, children) *policy.Verdict {
	return []func(Observed, children) *policy.Verdict{successVerdict, deadlineVerdict, failureVerdict, inPlaceVerdict}
}

// advance ends the set, or moves it to its next attempt or execution, if that is due. It reports whether it did: then
// nothing else may happen until that is stored.
func advance(s state) (_ state, over bool) {
	if s.KeepAttempts && !suspended(s.JobSet) {
		s, _ = run(s, beginAttempt, avoidNodes, noteCreated, noteReady)
	}
	s, _ = run(s, locate)
	for _, ask := range policies() {
		if v := ask(s.Observed, s.owned); v != nil {
			s, _ = run(s, verdict{v}.steps()...)
			return s, true
		}
	}
	return run(s, endRestart, causeOfTarget, recordSuspension, countExecution, storeAvoided, unpin, followJob, moveJob,
		forgetNodes)
}

// childSteps bring the children of an unfinished set, none of whose Jobs calls for a policy, to where they should be. Which Jobs wait is
// decided before the first of them.
func childSteps() []childStep {
	return []childStep{
		of(createService), of(createClaims), deleteJobs, noteSuspension, of(followInPlace), of(noteReady), of(clock), of(lookAgain),
		of(reportTroubles), writeJobs,
	}
}

// reportTroubles reports what keeps the pods of a set from running, and who writes the addresses of its Service.
func reportTroubles(s state) changes {
	return reports(append(endpoints(s.Observed), unschedulable(s.Observed), podsRefused(s.Observed, s.owned))...)
}

// bringChildren takes these steps.
func bringChildren(s state) state {
	s, _ = run(s, notePlaced)
	w := newWork(s)
	for _, take := range childSteps() {
		w.state = fold(w.state, take(w))
	}
	return w.state
}

// ManagedHere reports whether the set is this controller's to run. Other controllers run those that name one in managedBy.
func ManagedHere(js *jobsetv1alpha2.JobSet) bool {
	return ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName) == jobsetv1alpha2.JobSetControllerName
}

func suspended(js *jobsetv1alpha2.JobSet) bool { return ptr.Deref(js.Spec.Suspend, false) }
