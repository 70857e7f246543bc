// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// statusBuilder is the next status in the making, with the events that its transitions cause.
type statusBuilder struct {
	o      Observed
	steps  []helper.Step
	next   *batchv1alpha1.SequentialJobStatus
	events []Event
	// failedJob is the Job whose pods hold the first cause of its failure.
	failedJob *FailedJob
}

func newStatus(o Observed) *statusBuilder {
	return &statusBuilder{o: o, steps: helper.Steps(&o.SequentialJob.Spec), next: o.SequentialJob.Status.DeepCopy()}
}

// result returns the next status, nil if the stored one is right. All conditions of it hold for the generation that was taken
// up, and say so.
func (b *statusBuilder) result() (*batchv1alpha1.SequentialJobStatus, []Event) {
	for i := range b.next.Conditions {
		b.next.Conditions[i].ObservedGeneration = b.next.ObservedGeneration
	}
	if equality.Semantic.DeepEqual(&b.o.SequentialJob.Status, b.next) {
		return nil, b.events
	}
	return b.next, b.events
}

// takeUp notes that the controller acts on the present spec.
func (b *statusBuilder) takeUp(owned family) {
	sj := b.o.SequentialJob
	if b.next.StepsGeneration > b.next.ObservedGeneration && owned.active > 0 {
		b.event(corev1.EventTypeWarning, reasonSpecChanged, "SequentialJob spec changed while jobs running")
	}
	b.next.ObservedGeneration = sj.Generation
	if b.next.Progress.CompletedIndices == nil {
		b.next.Progress.CompletedIndices = []int32{}
	}
	if meta.FindStatusCondition(b.next.Conditions, batchv1alpha1.ConditionAvailable) == nil ||
		b.hasReason(batchv1alpha1.ConditionAvailable, batchv1alpha1.ReasonRetried) {
		b.setAvailable()
	}
}

// countChildren counts the children, and those steps that have ended.
func (b *statusBuilder) countChildren(owned family) {
	b.next.State = batchv1alpha1.SequentialJobState{Active: owned.active, Succeeded: int32(len(b.next.Progress.CompletedIndices))}
	if b.next.Progress.FailedIndex != nil {
		b.next.State.Failed = 1
	}
}

// set puts a condition in place: a False one only where the condition exists, and its time only with its status. It returns
// whether the status of the condition changed.
func (b *statusBuilder) set(conditionType string, status metav1.ConditionStatus, reason, message string) bool {
	current := meta.FindStatusCondition(b.next.Conditions, conditionType)
	if current == nil && status == metav1.ConditionFalse && !slices.Contains(alwaysShown, conditionType) {
		return false
	}
	was := metav1.ConditionFalse
	if current != nil {
		was = current.Status
	}
	meta.SetStatusCondition(&b.next.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: b.o.Now,
	})
	return was != status
}

// alwaysShown are the conditions that are of interest while they are False, too.
var alwaysShown = []string{batchv1alpha1.ConditionAvailable, batchv1alpha1.ConditionProgressing}

// is returns whether a condition is True.
func (b *statusBuilder) is(conditionType string) bool {
	return meta.IsStatusConditionTrue(b.next.Conditions, conditionType)
}

func (b *statusBuilder) hasReason(conditionType string, reasons ...string) bool {
	c := meta.FindStatusCondition(b.next.Conditions, conditionType)
	return c != nil && slices.Contains(reasons, c.Reason)
}

func (b *statusBuilder) setAvailable() {
	b.set(batchv1alpha1.ConditionAvailable, metav1.ConditionTrue, batchv1alpha1.ReasonOperational, "the sequence is operational")
}

func (b *statusBuilder) setProgressing(reason, message string) {
	status := metav1.ConditionFalse
	if reason == batchv1alpha1.ReasonJobStarted || reason == batchv1alpha1.ReasonJobCompleted {
		status = metav1.ConditionTrue
	}
	b.set(batchv1alpha1.ConditionProgressing, status, reason, message)
}

func (b *statusBuilder) event(eventType, reason, note string) {
	b.events = append(b.events, Event{Type: eventType, Reason: reason, Note: note})
}
