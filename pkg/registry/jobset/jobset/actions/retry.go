// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

const retried = "retried"

// Retry makes a failed set unfinished again, as after a restart that does not count. One that is suspended stays so.
func Retry(js *jobset.JobSet, spec *batch.JobSetRetrySpec, call Call) (*batch.JobSetActionStatus, error) {
	if err := checkMeant(js, spec.Preconditions, "retry"); err != nil {
		return nil, err
	}
	if answer, err := retriedBefore(js, spec.Preconditions, call); err != nil || answer != nil {
		return answer, err
	}
	if err := checkAttempt(js, spec.Preconditions); err != nil {
		return nil, err
	}
	if err := checkRetry(js); err != nil {
		return nil, err
	}
	if spec.MaxRestarts > 0 && js.Spec.FailurePolicy == nil {
		return nil, apierrors.NewInvalid(batch.Kind("JobSetRetry"), js.Name, field.ErrorList{field.Invalid(
			field.NewPath("spec", "maxRestarts"), spec.MaxRestarts, "must be 0: the JobSet has no failure policy")})
	}
	now := metav1.NewTime(call.Now.Truncate(seconds))
	first := js.Status.Restarts + 2 // the one that failed, unrecorded, was restarts+1
	js.Status.TerminalState = ""
	js.Status.AddedRestarts = int32(min(int64(js.Status.AddedRestarts)+int64(spec.MaxRestarts), math.MaxInt32))
	// Clients look at the type of a condition of upstream's alone that upstream never shows as False.
	meta.RemoveStatusCondition(&js.Status.Conditions, jobset.ConditionFailed)
	if suspended(js) {
		// It is the resume that begins its execution and its attempt.
		setCondition(js, now, jobset.ConditionRetried, metav1.ConditionTrue, ReasonRetried, call.signed(retried, spec.Reason))
		js.Status.Restarts++
		js.Status.StartTime = nil
		return retriedSuspended(js), nil
	}
	call.restartExecution(js)
	setCondition(js, now, jobset.ConditionRestarting, metav1.ConditionTrue, ReasonRetryRequested, call.signed("retry requested", spec.Reason))
	end(&js.Status, jobset.OutcomeFailed, "", "", call.Now) // unless the controller noted it
	entry := begin(&js.Status, jobset.Attempt{
		Number: first, Trigger: jobset.TriggerRetry, Scope: jobset.ScopeJobSet, User: call.user(), Reason: spec.Reason,
	}, call.Now)
	return retriedAs(js, entry), nil
}

func retriedAs(js *jobset.JobSet, entry *jobset.Attempt) *batch.JobSetActionStatus {
	return began(js, entry, "the JobSet was retried as attempt %d", entry.Number)
}

// retriedBefore returns the response to the first request to retry the set after the attempt; nil if there was none.
func retriedBefore(js *jobset.JobSet, p *batch.ActionPreconditions, call Call) (*batch.JobSetActionStatus, error) {
	same := func(a *jobset.Attempt) bool { return a.Trigger == jobset.TriggerRetry }
	if entry, err := begunBefore(js, p, call, retried, same); err != nil {
		return nil, err
	} else if entry != nil {
		return retriedAs(js, entry), nil
	}
	if p == nil || p.Attempt == nil || *p.Attempt != currentNumber(&js.Status) || !suspended(js) {
		return nil, nil
	}
	return retriedSuspended(js), nil
}

// retriedSuspended is the answer for a set that has failed no more, but runs only when it is resumed; nil for others.
func retriedSuspended(js *jobset.JobSet) *batch.JobSetActionStatus {
	of := meta.FindStatusCondition(js.Status.Conditions, jobset.ConditionRetried)
	if of == nil || of.Status != metav1.ConditionTrue || finishedAs(js) != "" {
		return nil
	}
	return &batch.JobSetActionStatus{
		UID: js.UID, User: helper.Requester(of.Message, retried), Time: &metav1.MicroTime{Time: of.LastTransitionTime.Time},
		Message: "the JobSet no longer counts as failed, but stays suspended; resume it to run it",
	}
}

// checkRetry refuses to retry what has not failed, and what a queue would not run again.
func checkRetry(js *jobset.JobSet) error {
	switch {
	case finishedAs(js) == helper.PhaseCompleted:
		return conflict(js, "the JobSet has completed, and only a failed JobSet can be retried; recreate it to run it again")
	case finishedAs(js) != helper.PhaseFailed && suspended(js):
		return conflict(js, "the JobSet is suspended, and only a failed JobSet can be retried; %s", wayOutOfSuspension(js))
	case finishedAs(js) != helper.PhaseFailed:
		return conflict(js, "the JobSet has not finished, and only a failed JobSet can be retried; restart it instead")
	}
	if _, queued := js.Labels[jobsetv1alpha2.QueueNameKey]; queued {
		return conflict(js, "%s does not run a finished JobSet again; recreate the JobSet instead", decider(js))
	}
	if owner := decider(js); owner != "" {
		return conflict(js, "%s does not run a finished JobSet again; recreate the owner instead", owner)
	}
	return nil
}
