// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Decide returns what to do about a sequence. doc.go describes the order.
func Decide(o Observed) Plan {
	p := decide(o)
	if o.Stripped != nil {
		p.RequeueAfter = hostplan.Sooner(p.RequeueAfter, strippedAgain)
	}
	return p
}

func decide(o Observed) Plan {
	if helper.ManagedElsewhere(o.SequentialJob) {
		return Plan{}
	}
	unknown, deleted := Unknown(o), o.SequentialJob.DeletionTimestamp != nil
	if first := lookForUnseen(o); first != nil && len(unknown) == 0 {
		return *first
	}
	o = o.readable()
	switch asks := asksFirst(o); {
	case deleted:
		return stopForDeletion(o).without(unknown)
	case len(unknown) > 0:
		return waitForUnreadable(o, unknown)
	case asks != Asks{}:
		return Plan{Asks: asks}
	}
	owned, s := familyOf(o), newStatus(o)
	restored := afterRestore(o)
	if helper.Finished(o.SequentialJob) != nil && !restored.reopens {
		s.fold(afterFinish(o, owned))
	} else {
		s.advance(owned, restored)
	}
	s.countChildren(owned)
	if first := s.setFinalizer(owned); first != nil {
		return *first
	}
	if len(s.plan.Questions()) > 0 {
		return Plan{Asks: s.plan.Asks}
	}
	s.plan.Status, s.plan.Events = s.result()
	return s.plan
}

// advance folds what the subjects want of an unfinished sequence. Transitions are status writes and nothing else.
func (s *status) advance(owned family, restored restoration) {
	o := s.o
	if restored.reopens {
		s.fold(wants{move: move{kind: reopen}})
	}
	s.fold(takeUpSpec(o, owned))
	for _, w := range restored.wants {
		s.fold(w)
	}
	if restored.over {
		return
	}
	if w, moves := nextMove(o, owned); moves {
		s.fold(w)
		s.followClock()
		return
	}
	s.fold(wants{delete: deletions(owned.inTheWay, noteOldAttempt)})
	switch c := owned.current; {
	case c == nil:
		w := startStep(o, owned)
		s.fold(w)
		s.followClock()
		if w.ready {
			s.fold(createChild(o))
		}
	case !c.Deleting: // one that is being deleted is gone soon, and its step runs again
		s.fold(childExists(o))
		s.fold(followChild(o, *c))
		s.followClock()
		s.fold(reportTroubles(o, *c, s.next))
	}
	s.fold(lookAtDeadline(s))
	s.fold(deleteExpired(o, owned))
}

// takeUpSpec notes that the controller acts on the present spec.
func takeUpSpec(o Observed, owned family) wants {
	status, w := &o.SequentialJob.Status, wants{move: move{kind: takeUp}}
	if status.StepsGeneration > status.ObservedGeneration && owned.active > 0 {
		w.events = []Event{warning(reasonSpecChanged, "SequentialJob spec changed while jobs running")}
	}
	if meta.FindStatusCondition(status.Conditions, batchv1alpha1.ConditionAvailable) == nil ||
		hasReason(status, batchv1alpha1.ConditionAvailable, batchv1alpha1.ReasonRetried) {
		w.conditions = []condition{available()}
	}
	return w
}

// nextMove returns the transition that is due, and whether there is one: a step ends or begins, or the sequence ends.
func nextMove(o Observed, owned family) (w wants, moves bool) {
	entry, index, child := begunStep(o.SequentialJob), currentIndex(&o.SequentialJob.Status), owned.current
	switch {
	case entry == nil && index >= helper.StepCount(&o.SequentialJob.Spec):
		return wants{move: move{kind: complete}}, true
	case entry == nil && helper.Suspended(o.SequentialJob):
		return wants{conditions: suspended(true, ""), delete: deletions(owned.inTheWay, noteOldAttempt)}, true
	case entry == nil:
		return wants{move: move{kind: begin, index: index}}, true
	case child != nil && child.End != "":
		return endStep(o, child), true
	case child == nil && entry.ChildUID != "":
		note := fmt.Sprintf("Job %d was deleted before it ended, and runs again", index)
		return wants{events: []Event{warning(reasonJobVanished, note)}, move: move{kind: begin, index: index}}, true
	case pastDeadline(o):
		return wants{move: move{kind: expire}}, true
	}
	return wants{}, false
}

// endStep records the end of the current child. Why a Job failed has to be asked for.
func endStep(o Observed, c *Child) wants {
	w := seen(o, *c)
	if c.End == Succeeded {
		w.move = move{kind: succeed, child: c}
		return w
	}
	cause := c.FirstCause
	if known, found := o.FirstCause.Get(); found && c.Kind == batchv1alpha1.StepKindJob {
		cause = &known
	}
	if o.FirstCause.Open() && c.Kind == batchv1alpha1.StepKindJob {
		w.asks.FirstCause = &FailedJob{ChildRef: c.ChildRef, InContainers: c.InContainers, Failure: failureOf(*c)}
	}
	w.move = move{kind: fail, child: c, cause: cause}
	return w
}

const (
	// unseenRetry is when to look again for a child that exists and that no cache shows.
	unseenRetry = time.Second
	// strippedAgain is when to ask the API again about a child without its label: no watch shows when it changes.
	strippedAgain = 15 * time.Second
)

// setFinalizer adds the finalizer while there are children, and removes it when none is left. A request that came late may have created a
// child whose finalizer is gone, and users can remove it. It returns what has to happen first about a child that no cache shows; nil for nothing.
func (s *status) setFinalizer(owned family) *Plan {
	p, has := &s.plan, hasFinalizer(s.o.SequentialJob)
	p.AddFinalizer = (p.creates() || owned.active > 0) && !has
	p.RemoveFinalizer = has && owned.active == 0 && !s.aboutToRun()
	ref := unseenAtEnd(s.o)
	if !p.RemoveFinalizer || ref == nil || s.o.Unseen.IsNone() {
		return nil
	}
	p.RemoveFinalizer = false
	switch live, exists := s.o.Unseen.Get(); {
	case s.o.Unseen.Open():
		return &Plan{Asks: Asks{Unseen: ref}}
	case exists && live.Stripped:
		return &Plan{Relabel: &live.ChildRef}
	case exists:
		return &Plan{RequeueAfter: unseenRetry} // a cache is about to show it
	}
	return nil
}

// deletions returns those of children that are not being deleted yet.
func deletions(members []member, note func(member) string) (out []Deletion) {
	for _, m := range members {
		if !m.Deleting {
			out = append(out, Deletion{ChildRef: m.ChildRef, Index: m.index, Note: note(m)})
		}
	}
	return out
}

func hasFinalizer(sj *batchv1alpha1.SequentialJob) bool {
	return slices.Contains(sj.Finalizers, batchv1alpha1.SequentialJobFinalizer)
}
