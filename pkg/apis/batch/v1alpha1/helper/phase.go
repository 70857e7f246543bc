// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Finished returns the condition that says that the sequence has completed or failed permanently; nil if it has not. A sequence
// that the controller fails to reconcile has not ended.
func Finished(sj *batchv1alpha1.SequentialJob) *metav1.Condition {
	if c := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionComplete); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	c := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionFailed)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason == batchv1alpha1.ReasonReconciliationError {
		return nil
	}
	return c
}

// Held returns whether the controller leaves the sequence alone until a user resumes or deletes it.
func Held(sj *batchv1alpha1.SequentialJob) bool {
	return meta.IsStatusConditionTrue(sj.Status.Conditions, batchv1alpha1.ConditionHeld)
}

// Phases returns all states of sequences.
func Phases() []string {
	return []string{
		string(batchv1alpha1.PhasePending), string(batchv1alpha1.PhaseRunning), string(batchv1alpha1.PhaseSuspended),
		string(batchv1alpha1.PhaseWaiting), string(batchv1alpha1.PhaseCompleted), string(batchv1alpha1.PhaseFailed), unreadable.Phase,
	}
}

// Phase returns the state of a sequence in one word.
func Phase(sj *batchv1alpha1.SequentialJob) batchv1alpha1.SequentialJobPhase {
	if unreadable.Is(sj) {
		return unreadable.Phase
	}
	if c := Finished(sj); c != nil {
		if c.Type == batchv1alpha1.ConditionComplete {
			return batchv1alpha1.PhaseCompleted
		}
		return batchv1alpha1.PhaseFailed
	}
	if Suspended(sj) {
		return batchv1alpha1.PhaseSuspended
	}
	switch step := CurrentStep(&sj.Status); {
	case step != nil && step.State == batchv1alpha1.StepWaiting:
		return batchv1alpha1.PhaseWaiting
	case step != nil && step.State == batchv1alpha1.StepStarting && blocked(&sj.Status):
		return batchv1alpha1.PhasePending
	case len(sj.Status.Steps) > 0:
		return batchv1alpha1.PhaseRunning
	}
	return batchv1alpha1.PhasePending
}

// blocked returns whether it is known that the child of the current step cannot be created.
func blocked(status *batchv1alpha1.SequentialJobStatus) bool {
	return meta.IsStatusConditionFalse(status.Conditions, batchv1alpha1.ConditionAvailable) ||
		meta.IsStatusConditionTrue(status.Conditions, batchv1alpha1.ConditionResourcesUnavailable)
}

// waits are the reasons of Progressing that say more than the phase.
var waits = []string{batchv1alpha1.ReasonWaitingForPods, batchv1alpha1.ReasonSuspendedByOthers, batchv1alpha1.ReasonChildUnreadable}

// Trouble is a condition that keeps a sequence from running while it has a status.
type Trouble struct {
	Condition string
	Status    metav1.ConditionStatus
}

// Troubles returns the conditions that keep a sequence from running. The first that has its status is the reason of the sequence.
func Troubles() []Trouble {
	return []Trouble{
		{batchv1alpha1.ConditionFailed, metav1.ConditionTrue}, // the controller fails to reconcile it
		{batchv1alpha1.ConditionAvailable, metav1.ConditionFalse},
		{batchv1alpha1.ConditionResourcesUnavailable, metav1.ConditionTrue},
		{namespaceuid.Condition, metav1.ConditionTrue},
		{batchv1alpha1.ConditionHeld, metav1.ConditionTrue},
	}
}

// Explanation returns the condition that explains the state of a sequence; nil while the sequence runs as it should, has completed, or is
// suspended.
func Explanation(sj *batchv1alpha1.SequentialJob) *metav1.Condition {
	if c := Finished(sj); c != nil {
		if c.Type == batchv1alpha1.ConditionComplete {
			return nil
		}
		return c
	}
	for _, t := range Troubles() {
		if c := meta.FindStatusCondition(sj.Status.Conditions, t.Condition); c != nil && c.Status == t.Status {
			return c
		}
	}
	if c := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionProgressing); c != nil && slices.Contains(waits, c.Reason) {
		return c
	}
	return nil
}

// Reason returns why a sequence is in its phase, in one word; "" while it runs as it should, has completed, or is suspended.
func Reason(sj *batchv1alpha1.SequentialJob) string {
	if unreadable.Is(sj) {
		return unreadable.Phase
	}
	switch c := Explanation(sj); {
	case c != nil && Finished(sj) != nil && c.Reason == batchv1alpha1.ReasonJobFailed && sj.Status.Progress.FailureReason != "":
		return sj.Status.Progress.FailureReason
	case c != nil:
		return c.Reason
	case Phase(sj) == batchv1alpha1.PhaseWaiting:
		return batchv1alpha1.ReasonWaitingForQuota
	}
	return ""
}
