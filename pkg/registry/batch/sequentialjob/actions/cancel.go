// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

const cancelled = "cancelled"

// Cancel fails a sequence permanently. The controller then stops the child as after any failure.
func Cancel(sj *batch.SequentialJob, spec *batch.SequentialJobActionSpec, call Call) (*batch.SequentialJobActionStatus, error) {
	if err := checkUID(sj, spec.Preconditions); err != nil {
		return nil, err
	}
	if err := checkStep(sj, spec.Preconditions); err != nil {
		return nil, err
	}
	if answer := cancellation(sj); answer != nil {
		return answer, nil
	}
	if err := checkManaged(sj); err != nil {
		return nil, err
	}
	switch c := finished(sj); {
	case c == nil:
	case c.Type == batchv1alpha1.ConditionComplete:
		return nil, conflict(sj, "the SequentialJob has completed; there is nothing to cancel")
	default:
		return nil, conflict(sj, "the SequentialJob has failed (%s); there is nothing to cancel", c.Reason)
	}
	now, status := call.second(), &sj.Status
	setCondition(sj, now, batchv1alpha1.ConditionFailed, metav1.ConditionTrue, batchv1alpha1.ReasonCancelled,
		call.signed(cancelled, spec.Reason))
	if held(sj) {
		setCondition(sj, now, batchv1alpha1.ConditionHeld, metav1.ConditionFalse, batchv1alpha1.ReasonCancelled,
			call.signed(cancelled, spec.Reason))
	}
	status.CompletionTime = &now
	if since := status.ActiveSince; since != nil {
		status.ActiveSeconds += int64(max(now.Sub(since.Time), 0) / time.Second)
		status.ActiveSince = nil
	}
	record(sj, batch.ActionCancel, spec.Reason, call)
	return recorded(sj), nil
}

// cancellation returns the response to the first user who cancelled the sequence; nil if it was not cancelled.
func cancellation(sj *batch.SequentialJob) *batch.SequentialJobActionStatus {
	failed := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionFailed)
	if failed == nil || failed.Status != metav1.ConditionTrue || failed.Reason != batchv1alpha1.ReasonCancelled {
		return nil
	}
	if last := sj.Status.LastAction; last != nil && last.Action == batch.ActionCancel {
		return recorded(sj)
	}
	return &batch.SequentialJobActionStatus{ // another client wrote the status
		UID: sj.UID, User: helper.Requester(failed.Message, cancelled), Time: &metav1.MicroTime{Time: failed.LastTransitionTime.Time},
		Message: "the SequentialJob was cancelled",
	}
}

// CancelledBy returns the user who cancelled the sequence; empty if no user has.
func CancelledBy(sj *batch.SequentialJob) string {
	if answer := cancellation(sj); answer != nil {
		return answer.User
	}
	return ""
}

// setCondition puts a condition in place as the controller does: its time changes with its status only.
func setCondition(sj *batch.SequentialJob, now metav1.Time, conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&sj.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
		LastTransitionTime: now, ObservedGeneration: sj.Generation,
	})
}
