// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// Suspend sets spec.suspend.
func Suspend(sj *batch.SequentialJob, spec *batch.SequentialJobActionSpec, call Call) (*batch.SequentialJobActionStatus, error) {
	return turn(sj, spec, true, call)
}

// Resume clears spec.suspend.
func Resume(sj *batch.SequentialJob, spec *batch.SequentialJobActionSpec, call Call) (*batch.SequentialJobActionStatus, error) {
	return turn(sj, spec, false, call)
}

// turn suspends or resumes a sequence. Neither begins an attempt.
func turn(sj *batch.SequentialJob, spec *batch.SequentialJobActionSpec, suspend bool, call Call) (*batch.SequentialJobActionStatus, error) {
	action, verb, already := batch.ActionResume, "resume", "the SequentialJob is not suspended; nothing changed"
	if suspend {
		action, verb, already = batch.ActionSuspend, "suspend", "the SequentialJob is already suspended; nothing changed"
	}
	if err := checkMeant(sj, spec.Preconditions); err != nil {
		return nil, err
	}
	if repeats(sj, spec, action, suspend) {
		return recorded(sj), nil
	}
	if err := checkStep(sj, spec.Preconditions); err != nil {
		return nil, err
	}
	if err := checkUnfinished(sj, verb); err != nil {
		return nil, err
	}
	released := !suspend && endHold(sj, spec.Reason, call)
	if suspended(sj) == suspend && !released {
		return nothing(sj, already), nil
	}
	sj.Spec.Suspend = ptr.To(suspend)
	record(sj, action, spec.Reason, call)
	return recorded(sj), nil
}

// repeats returns whether the action names itself as the last one, and all is still as it left it.
func repeats(sj *batch.SequentialJob, spec *batch.SequentialJobActionSpec, action batch.SequentialJobAction, suspend bool) bool {
	return suspended(sj) == suspend && namesLast(sj, spec.Preconditions, action) && finished(sj) == nil && (suspend || !held(sj))
}

// RecordEdit records who suspended or resumed a sequence by changing spec.suspend, as the actions do. The changed sequence has the status
// of the previous one, and may share memory with it.
func RecordEdit(next, prev *batch.SequentialJob, call Call) {
	if call.User == "" || suspended(next) == suspended(prev) || checkManaged(prev) != nil || finished(prev) != nil {
		return
	}
	action := batch.ActionResume
	if suspended(next) {
		action = batch.ActionSuspend
	} else if held(next) {
		next.Status = *next.Status.DeepCopy()
		endHold(next, "", call)
	}
	record(next, action, "", call) // replaces the pointer, and changes nothing that is shared
}

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
