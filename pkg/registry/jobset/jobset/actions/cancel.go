// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

const cancelled = "cancelled"

// Cancel fails a set permanently. The controller then deletes the active Jobs as after any failure. If Kueue runs the
// set in another cluster, it sees that the set has finished here, and deletes the copy there.
func Cancel(js *jobset.JobSet, spec *batch.JobSetActionSpec, call Call) (*batch.JobSetActionStatus, error) {
	if err := checkUID(js, spec.Preconditions); err != nil {
		return nil, err
	}
	if _, err := endedBefore(js, spec.Preconditions, call, cancelled, jobset.OutcomeCancelled); err != nil {
		return nil, err
	}
	if err := checkAttempt(js, spec.Preconditions); err != nil {
		return nil, err
	}
	if answer := cancellation(js); answer != nil {
		return answer, nil
	}
	if err := checkManaged(js); err != nil && !(runsInWorkerCluster(js) && js.DeletionTimestamp == nil) {
		return nil, err
	}
	switch finishedAs(js) {
	case helper.PhaseCompleted:
		return nil, conflict(js, "the JobSet has completed; there is nothing to cancel")
	case helper.PhaseFailed:
		return nil, conflict(js, "the JobSet has failed; there is nothing to cancel")
	}
	now := metav1.NewTime(call.Now.Truncate(seconds))
	setCondition(js, now, jobset.ConditionFailed, metav1.ConditionTrue, ReasonCancelled, call.signed(cancelled, spec.Reason))
	for _, trouble := range []string{jobset.ConditionRestarting, jobset.ConditionCreationFailure, jobset.ConditionUnschedulable,
		jobset.ConditionHeld} {
		endCondition(js, now, trouble, reasonJobSetFailed, "jobset failed")
	}
	endCondition(js, now, jobset.ConditionNameConflict, helper.ReasonJobNamesFree, helper.MessageJobNamesFree)
	js.Status.TerminalState = helper.PhaseFailed
	end(&js.Status, jobset.OutcomeCancelled, call.user(), spec.Reason, call.Now)
	return cancellation(js), nil
}

// cancellation returns the answer to the first user who cancelled the set; nil if it was not cancelled.
func cancellation(js *jobset.JobSet) *batch.JobSetActionStatus {
	failed := meta.FindStatusCondition(js.Status.Conditions, jobset.ConditionFailed)
	if failed == nil || failed.Status != metav1.ConditionTrue || failed.Reason != ReasonCancelled {
		return nil
	}
	if entry := Current(&js.Status); entry != nil && entry.Outcome == jobset.OutcomeCancelled {
		return ended(js, entry, cancelled)
	}
	return &batch.JobSetActionStatus{
		UID: js.UID, User: helper.Requester(failed.Message, cancelled), Time: &metav1.MicroTime{Time: failed.LastTransitionTime.Time},
		Message: "the JobSet was cancelled while no attempt was running",
	}
}

// CancelledBy returns the user who cancelled the set; empty if no user has.
func CancelledBy(js *jobset.JobSet) string {
	if answer := cancellation(js); answer != nil {
		return answer.User
	}
	return ""
}
