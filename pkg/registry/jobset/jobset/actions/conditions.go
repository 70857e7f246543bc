// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Reasons of conditions that actions set.
const (
	// ReasonRestartRequested is the reason of RestartingJobSet after a restart.
	ReasonRestartRequested = reasons.RestartRequested
	// ReasonRetryRequested is the reason of RestartingJobSet after a retry.
	ReasonRetryRequested = "RetryRequested"
	// ReasonRetried is the reason of Retried, after the retry of a suspended set.
	ReasonRetried = reasons.Retried
	// ReasonCancelled is the reason of Failed after a cancellation.
	ReasonCancelled = jobsetv1alpha2.ReasonCancelled

	// Those that the controller gives, when it fails a set.
	reasonJobSetFailed = helper.ReasonJobSetFailed
)

// setCondition puts a condition in place as the controller does: its time changes with its status only.
func setCondition(js *jobset.JobSet, now metav1.Time, conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&js.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
		LastTransitionTime: now, ObservedGeneration: js.Generation,
	})
}

// endCondition makes a condition False, if there is one.
func endCondition(js *jobset.JobSet, now metav1.Time, conditionType, reason, message string) {
	if meta.FindStatusCondition(js.Status.Conditions, conditionType) != nil {
		setCondition(js, now, conditionType, metav1.ConditionFalse, reason, message)
	}
}

// finishedAs returns how a set has finished; "" while it is not.
func finishedAs(js *jobset.JobSet) string {
	phase, _ := helper.Finished(Versioned(js))
	return phase
}

func suspended(js *jobset.JobSet) bool { return ptr.Deref(js.Spec.Suspend, false) }

// restartExecution counts the execution that follows on a restart of the whole set, and starts its clock.
func (c Call) restartExecution(js *jobset.JobSet) {
	var start *metav1.Time
	if c.Gates.JobSetActiveDeadlineSeconds {
		start = &metav1.Time{Time: c.Now.Truncate(seconds)}
	}
	edit(&js.Status, func(s *jobsetv1alpha2.JobSetStatus) {
		helper.RestartExecution(s, c.Gates.ExecutionAttemptsTracking, start)
	})
}
