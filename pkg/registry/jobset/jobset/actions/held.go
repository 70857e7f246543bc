// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// The controller holds a set when the store was restored from a backup and it is not known what became of the set since. A user ends that:
// by resuming, cancelling or deleting the set, or by an edit that resumes it.

// ReasonResumed is the reason of Held after a user has resumed the set.
const ReasonResumed = "Resumed"

func held(js *jobset.JobSet) bool {
	return meta.IsStatusConditionTrue(js.Status.Conditions, jobset.ConditionHeld)
}

// release ends the hold of a set, also of one in a queue or with an owner: these decide when it runs, but not that it runs once more.
func release(js *jobset.JobSet, spec *batch.JobSetActionSpec, call Call) (*batch.JobSetActionStatus, error) {
	if err := checkAttempt(js, spec.Preconditions); err != nil {
		return nil, err
	}
	if err := checkUnfinished(js, resume); err != nil {
		return nil, err
	}
	endHold(js, spec.Reason, call)
	if suspended(js) && decider(js) != "" {
		return &batch.JobSetActionStatus{
			UID: js.UID, User: call.user(), Time: call.time(), Message: "the JobSet is no longer held; " + decider(js) + " decides when it runs",
		}, nil
	}
	if suspended(js) {
		js.Spec.Suspend = ptr.To(false)
	}
	return beginResumed(js, spec, call), nil
}

// endHold notes who has decided that the set runs.
func endHold(js *jobset.JobSet, reason string, call Call) {
	endCondition(js, metav1.NewTime(call.Now.Truncate(seconds)), jobset.ConditionHeld, ReasonResumed, call.signed(resumed, reason))
}
