// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

// waits are the reasons of Progressing that say more than the phase.
var waits = []string{batchv1alpha1.ReasonWaitingForPods, batchv1alpha1.ReasonSuspendedByOthers}

// Reason returns why a sequence is in its phase, in one word; "" while it runs as it should, has completed, or is suspended.
func Reason(sj *batchv1alpha1.SequentialJob) string {
	if c := Finished(sj); c != nil {
		switch {
		case c.Type == batchv1alpha1.ConditionComplete:
			return ""
		case c.Reason == batchv1alpha1.ReasonJobFailed && sj.Status.Progress.FailureReason != "":
			return sj.Status.Progress.FailureReason
		}
		return c.Reason
	}
	for _, cause := range []struct {
		condition string
		status    metav1.ConditionStatus
	}{
		{batchv1alpha1.ConditionFailed, metav1.ConditionTrue}, // the controller fails to reconcile it
		{batchv1alpha1.ConditionAvailable, metav1.ConditionFalse},
		{batchv1alpha1.ConditionResourcesUnavailable, metav1.ConditionTrue},
		{namespaceuid.Condition, metav1.ConditionTrue},
		{batchv1alpha1.ConditionHeld, metav1.ConditionTrue},
	} {
		if c := meta.FindStatusCondition(sj.Status.Conditions, cause.condition); c != nil && c.Status == cause.status {
			return c.Reason
		}
	}
	if c := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionProgressing); c != nil && slices.Contains(waits, c.Reason) {
		return c.Reason
	}
	if Phase(sj) == batchv1alpha1.PhaseWaiting {
		return batchv1alpha1.ReasonWaitingForQuota
	}
	return ""
}
