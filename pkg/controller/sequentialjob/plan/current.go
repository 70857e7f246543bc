// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// failureOf returns the condition of a failed Job.
func failureOf(c Child) batchv1.JobCondition {
	failure := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: c.Reason, Message: c.Message}
	if c.EndTime != nil {
		failure.LastTransitionTime = *c.EndTime
	}
	return failure
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

// Current returns the child of the current attempt of the current step; zero if there is none.
func Current(o Observed) ChildRef {
	for i := range o.Children {
		if isCurrent(o.SequentialJob, o.Children[i]) {
			return o.Children[i].ChildRef
		}
	}
	return ChildRef{}
}

// namesQueue returns whether the sequence, or its current child, names a queue.
func namesQueue(q *sequence) bool {
	return q.SequentialJob.Labels[helper.QueueKey] != "" || q.queueName() != "" || q.current != nil && q.current.Queued
}

// queueName returns the queue that the child of the current step is given; empty if none.
func (q *sequence) queueName() string {
	if step, found := q.step(); found {
		return queueOf(q.SequentialJob, step)
	}
	return ""
}

// MayQueue returns whether children of the sequence may name a queue.
func MayQueue(sj *batchv1alpha1.SequentialJob) bool {
	return sj.Labels[helper.QueueKey] != "" || slices.ContainsFunc(helper.Steps(&sj.Spec),
		func(step helper.Step) bool { return queueOf(sj, step) != "" }) ||
		slices.ContainsFunc(sj.Status.Steps, func(s batchv1alpha1.SequentialJobStepStatus) bool {
			return s.State == batchv1alpha1.StepWaiting || s.State == batchv1alpha1.StepSuspended
		})
}

// queueOf returns the queue that the child of a step is given.
func queueOf(sj *batchv1alpha1.SequentialJob, step helper.Step) string {
	switch {
	case step.Job != nil && step.Job.Labels[helper.QueueKey] != "":
		return step.Job.Labels[helper.QueueKey]
	case step.JobSet != nil && step.JobSet.Labels[helper.QueueKey] != "":
		return step.JobSet.Labels[helper.QueueKey]
	}
	return sj.Labels[helper.QueueKey]
}
