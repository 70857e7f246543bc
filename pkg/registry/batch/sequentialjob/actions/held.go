// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// The controller holds a sequence when the store was restored from a backup and it is not known what became of the sequence since. A user
// ends that: by resuming, cancelling or deleting the sequence, or by an edit that resumes it.

func held(sj *batch.SequentialJob) bool {
	return meta.IsStatusConditionTrue(sj.Status.Conditions, batchv1alpha1.ConditionHeld)
}

// endHold notes who has decided about the sequence. It returns whether it was held.
func endHold(sj *batch.SequentialJob, reason string, call Call) bool {
	if !held(sj) {
		return false
	}
	setCondition(sj, call.second(), batchv1alpha1.ConditionHeld, metav1.ConditionFalse, batchv1alpha1.ReasonResumed,
		call.signed("resumed", reason))
	return true
}
