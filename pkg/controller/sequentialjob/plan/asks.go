// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// Asks are what a decision depends on and the snapshot does not have. A plan that asks for something holds nothing else: the
// decision is made once more on a snapshot with the answers. An answer may be that something could not be obtained, so that a
// decision never asks twice.
type Asks struct {
	// Unseen asks for Observed.Unseen: the child that the status knows and no cache shows. Its UID is empty if it is not known.
	Unseen *ChildRef
	// Queue asks for Observed.Queue with the Workload of the current child, which is zero while there is none.
	Queue *ChildRef
	// Restored asks for Observed.Restored.
	Restored bool
	// Contest asks for Observed.Contest of a child that is about to be resumed.
	Contest *ChildRef
	// FirstCause asks for Observed.FirstCause of the Job that has failed.
	FirstCause *FailedJob
	// Earlier asks for Observed.Earlier before a child is created.
	Earlier *EarlierQuery
}

// FailedJob is a failed Job whose pods hold the first cause of its failure.
type FailedJob struct {
	ChildRef
	// InContainers means that pods may hold the failure although they have not failed themselves.
	InContainers bool
	// Failure is the condition of the Job that reports its failure.
	Failure batchv1.JobCondition
}

// EarlierQuery asks for what still runs of earlier children.
type EarlierQuery struct {
	// Index and Attempt are the step and the attempt of the child to create. Its own pods are not asked for.
	Index   int
	Attempt int32
	// JobSets are the names of earlier JobSets whose Jobs may not have ended.
	JobSets []string
}

// Questions names what a plan asks for; none for a plan that can be carried out.
func (p Plan) Questions() (questions []string) {
	a := p.Asks
	for _, question := range []struct {
		name string
		put  bool
	}{
		{"unseen child", a.Unseen != nil}, {"queue", a.Queue != nil}, {"restored", a.Restored}, {"contest", a.Contest != nil},
		{"first cause", a.FirstCause != nil}, {"earlier children", a.Earlier != nil},
	} {
		if question.put {
			questions = append(questions, question.name)
		}
	}
	return questions
}

// add adds what a subject asks for.
func (a *Asks) add(more Asks) {
	a.Contest = cmp.Or(a.Contest, more.Contest)
	a.FirstCause = cmp.Or(a.FirstCause, more.FirstCause)
	a.Earlier = cmp.Or(a.Earlier, more.Earlier)
}

// asksFirst returns what is asked for before anything else about a sequence is decided.
func asksFirst(q *sequence) (a Asks) {
	a.Restored = q.Restored.Open() && restoreMatters(q)
	if q.Queue.Open() && q.finished == nil && namesQueue(q) {
		a.Queue = &ChildRef{}
		if q.current != nil {
			a.Queue = &q.current.ChildRef
		}
	}
	return a
}

// lookForUnseen returns what has to happen before anything is decided about a sequence with a child that no cache shows; nil for
// nothing. Another process may have seen the child before this one did. Without the question its step would run again.
func lookForUnseen(q *sequence) *Plan {
	ref := unseen(q)
	if ref == nil {
		return lookForEarlier(q)
	}
	if q.Unseen.IsNone() {
		return nil
	}
	if q.Unseen.Open() {
		return &Plan{Asks: Asks{Unseen: ref}}
	}
	if live, exists := q.Unseen.Get(); exists && live.Stripped {
		return &Plan{Relabel: &live.ChildRef}
	}
	return &Plan{Lags: true} // also if it is not known whether it exists
}

// lookForEarlier returns what has to happen while pods of earlier children run and no cache shows a child of the current step; nil for
// nothing. A child of an earlier attempt that has lost its label is deleted like others once a cache shows it. Else its pods run on.
func lookForEarlier(q *sequence) *Plan {
	ref := earlierAttempt(q)
	if ref == nil {
		return nil
	}
	switch live, exists := q.Unseen.Get(); {
	case q.Unseen.Open():
		return &Plan{Asks: Asks{Unseen: ref}}
	case exists && live.Stripped:
		return &Plan{Relabel: &live.ChildRef}
	}
	return nil
}

// earlierAttempt returns the child of an earlier attempt of the current step, for whose pods the step may be waiting; nil for none.
func earlierAttempt(q *sequence) *ChildRef {
	if _, runs := q.Earlier.Get(); !runs || q.finished != nil || q.entry == nil || q.entry.Attempts <= 1 {
		return nil
	}
	return unseenAtEnd(q)
}

// unseen returns the child that status knows, that had not ended, and that the snapshot does not hold; nil for none. Whether
// it is gone decides whether its step runs again.
func unseen(q *sequence) *ChildRef {
	if !q.begun || q.entry.ChildUID == "" || q.finished != nil || q.current != nil ||
		q.SequentialJob.DeletionTimestamp != nil && !hasFinalizer(q.SequentialJob) {
		return nil
	}
	return &ChildRef{Kind: q.entry.Kind, Name: q.entry.ChildName, UID: q.entry.ChildUID}
}

// unseenAtEnd returns the child of the current step if the snapshot does not hold it although it may run; nil if it
// does not. Caches do not show a child that lost its label, and without its finalizer the sequence would leave it to
// run.
func unseenAtEnd(q *sequence) *ChildRef {
	entry := q.entry
	if entry == nil || entry.State == batchv1alpha1.StepSucceeded || entry.State == batchv1alpha1.StepPending {
		return nil
	}
	if slices.ContainsFunc(q.Children, func(c Child) bool { return c.Name == entry.ChildName && c.Kind == entry.Kind }) {
		return nil // no other one can have the name
	}
	return &ChildRef{Kind: entry.Kind, Name: entry.ChildName, UID: entry.ChildUID}
}

// namesQueue returns whether the sequence, or its current child, names a queue.
func namesQueue(q *sequence) bool {
	return q.SequentialJob.Labels[helper.QueueKey] != "" || q.queueName() != "" || q.current != nil && q.current.Queued
}

// failureOf returns the condition of a failed Job.
func failureOf(c Child) batchv1.JobCondition {
	failure := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: c.Reason, Message: c.Message}
	if c.EndTime != nil {
		failure.LastTransitionTime = *c.EndTime
	}
	return failure
}
