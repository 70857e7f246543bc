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
	q, unknown := look(o), Unknown(o)
	if first := lookForUnseen(q); first != nil && len(unknown) == 0 {
		return *first
	}
	if len(o.Unreadable) > 0 {
		q = look(o.readable())
	}
	switch asks := asksFirst(q); {
	case o.SequentialJob.DeletionTimestamp != nil:
		return stopForDeletion(q).without(unknown)
	case len(unknown) > 0:
		return waitForUnreadable(q, unknown)
	case asks != Asks{}:
		return Plan{Asks: asks}
	}
	s := newStatus(q)
	if q.finished != nil && !reopens(q) {
		w := afterFinish(q)
		s.fold(&w)
	} else {
		s.advance()
	}
	s.next.State = counts(q, s.next)
	if first := setFinalizer(q, s.next, &s.plan); first != nil {
		return *first
	}
	if len(s.plan.Questions()) > 0 {
		return Plan{Asks: s.plan.Asks}
	}
	return s.result()
}

// subject returns what is wanted of a sequence that has not ended. The status is the one that earlier subjects have changed.
type subject func(q *sequence, next *batchv1alpha1.SequentialJobStatus) wants

// subjects returns the subjects in the order in which they are asked, until one wants nothing else to happen.
func subjects() []subject {
	return []subject{
		reopenRetried, takeUpSpec, afterRestore, afterTakeOver, nextMove, clearTheWay, startStep, createChild, childExists, followChild,
		reportTroubles, awaitDeadline, deleteExpired,
	}
}

// advance folds what the subjects want. Transitions are status writes and nothing else.
func (s *status) advance() {
	for _, subject := range subjects() {
		w := subject(s.q, s.next)
		if s.fold(&w); w.over {
			return
		}
	}
}

// takeUpSpec notes that the controller acts on the present spec.
func takeUpSpec(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	status, w := &q.SequentialJob.Status, wants{move: move{kind: takeUp}}
	if status.StepsGeneration > status.ObservedGeneration && q.active > 0 {
		w.events = []Event{warning(reasonSpecChanged, "SequentialJob spec changed while jobs running")}
	}
	if meta.FindStatusCondition(status.Conditions, batchv1alpha1.ConditionAvailable) == nil ||
		hasReason(status, batchv1alpha1.ConditionAvailable, batchv1alpha1.ReasonRetried) {
		w.conditions = []condition{available()}
	}
	return w
}

// nextMove returns the transition that is due: a step ends or begins, or the sequence ends.
func nextMove(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	w := wants{clock: true, over: true}
	switch child := q.current; {
	case !q.begun && q.index >= len(q.steps):
		w.move = move{kind: complete}
	case !q.begun && q.suspended:
		w.conditions, w.delete = suspended(true, ""), deletions(q.inTheWay, noteOldAttempt)
	case !q.begun:
		w.move = move{kind: begin, index: q.index}
	case child != nil && child.End != "":
		w.endStep(q, child)
	case child == nil && q.entry.ChildUID != "":
		w.events = []Event{warning(reasonJobVanished, fmt.Sprintf("Job %d was deleted before it ended, and runs again", q.index))}
		w.move = move{kind: begin, index: q.index}
	case pastDeadline(q):
		w.move = move{kind: expire}
	default:
		return wants{}
	}
	return w
}

// endStep records the end of the current child. Why a Job failed has to be asked for.
func (w *wants) endStep(q *sequence, c *Child) {
	w.seen(q, *c)
	if c.End == Succeeded {
		w.move = move{kind: succeed, child: c}
		return
	}
	cause := c.FirstCause
	if c.Kind == batchv1alpha1.StepKindJob {
		if known, found := q.FirstCause.Get(); found {
			cause = &known
		}
		if q.FirstCause.Open() {
			w.asks.FirstCause = &FailedJob{ChildRef: c.ChildRef, InContainers: c.InContainers, Failure: failureOf(*c)}
		}
	}
	w.move = move{kind: fail, child: c, cause: cause}
}

// clearTheWay deletes children that must be gone before a child is created.
func clearTheWay(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	return wants{delete: deletions(q.inTheWay, noteOldAttempt)}
}

// counts returns the numbers of children, and of steps that have ended.
func counts(q *sequence, next *batchv1alpha1.SequentialJobStatus) batchv1alpha1.SequentialJobState {
	state := batchv1alpha1.SequentialJobState{Active: q.active, Succeeded: int32(len(next.Progress.CompletedIndices))}
	if next.Progress.FailedIndex != nil {
		state.Failed = 1
	}
	return state
}

const (
	// unseenRetry is when to look again for a child that exists and that no cache shows.
	unseenRetry = time.Second
	// strippedAgain is when to ask the API again about a child without its label: no watch shows when it changes.
	strippedAgain = 15 * time.Second
)

// setFinalizer adds the finalizer while there are children, and removes it when none is left. A request that came late may have created a
// child whose finalizer is gone, and users can remove it. It returns what has to happen first; nil for nothing.
func setFinalizer(q *sequence, next *batchv1alpha1.SequentialJobStatus, p *Plan) *Plan {
	has, entry := hasFinalizer(q.SequentialJob), begun(next)
	aboutToRun := entry != nil && entry.State != batchv1alpha1.StepSuspended // the next decision creates a child
	p.AddFinalizer = (p.creates() || q.active > 0) && !has
	p.RemoveFinalizer = has && q.active == 0 && !aboutToRun
	ref := unseenAtEnd(q)
	if !p.RemoveFinalizer || ref == nil || q.Unseen.IsNone() {
		return nil
	}
	p.RemoveFinalizer = false
	return lookAgain(q, ref)
}

// lookAgain returns what has to happen before the finalizer is removed, because a child may exist that no cache shows; nil for nothing.
func lookAgain(q *sequence, ref *ChildRef) *Plan {
	switch live, exists := q.Unseen.Get(); {
	case q.Unseen.Open():
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
