// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// What a set is after an action, in messages.
const (
	paused  = "suspended"
	resumed = "resumed"
	resume  = "resume"
)

// Suspend sets spec.suspend, and ends the attempt that runs.
func Suspend(js *jobset.JobSet, spec *batch.JobSetActionSpec, call Call) (*batch.JobSetActionStatus, error) {
	if err := checkMeant(js, spec.Preconditions, "suspend"); err != nil {
		return nil, err
	}
	before, err := endedBefore(js, spec.Preconditions, call, paused, jobset.OutcomeSuspended)
	if err != nil {
		return nil, err
	}
	if err := checkSwitch(js, spec.Preconditions, "suspend"); err != nil {
		return nil, err
	}
	switch {
	case before != nil && suspended(js):
		return ended(js, before, paused), nil
	case before != nil:
		return nil, lapsed(js, before.Number, paused, before.EndUser, before.EndTime, call)
	case suspended(js):
		return nothing(js, "the JobSet is already suspended; nothing changed"), nil
	}
	js.Spec.Suspend = ptr.To(true)
	if entry := end(&js.Status, jobset.OutcomeSuspended, call.user(), spec.Reason, call.Now); entry != nil {
		return ended(js, entry, paused), nil
	}
	message := "the JobSet was suspended before it started"
	if held(js) {
		message = "the JobSet was suspended; it is held, too, until it is resumed"
	}
	return &batch.JobSetActionStatus{UID: js.UID, User: call.user(), Time: call.time(), Message: message}, nil
}

// Resume clears spec.suspend, and begins an attempt.
func Resume(js *jobset.JobSet, spec *batch.JobSetActionSpec, call Call) (*batch.JobSetActionStatus, error) {
	if err := checkMeant(js, spec.Preconditions, resume); err != nil {
		return nil, err
	}
	same := func(a *jobset.Attempt) bool { return a.Trigger == jobset.TriggerResume && a.User != "" }
	if entry, err := begunBefore(js, spec.Preconditions, call, resumed, same); err != nil {
		return nil, err
	} else if entry != nil {
		return resumedAs(js, entry), nil
	}
	if held(js) {
		return release(js, spec, call)
	}
	if err := checkSwitch(js, spec.Preconditions, resume); err != nil {
		return nil, err
	}
	if !suspended(js) {
		return nothing(js, "the JobSet is not suspended; nothing changed"), nil
	}
	js.Spec.Suspend = ptr.To(false)
	return beginResumed(js, spec, call), nil
}

// beginResumed begins the attempt of a set that was resumed.
func beginResumed(js *jobset.JobSet, spec *batch.JobSetActionSpec, call Call) *batch.JobSetActionStatus {
	// It may have been suspended by an edit that the controller has not seen yet.
	end(&js.Status, jobset.OutcomeSuspended, "", "", call.Now)
	entry := begin(&js.Status, jobset.Attempt{
		Number: js.Status.Restarts + 1, Trigger: jobset.TriggerResume, Scope: jobset.ScopeJobSet, User: call.user(), Reason: spec.Reason,
	}, call.Now)
	return resumedAs(js, entry)
}

func resumedAs(js *jobset.JobSet, entry *jobset.Attempt) *batch.JobSetActionStatus {
	return began(js, entry, "the JobSet was resumed as attempt %d", entry.Number)
}

// checkSwitch refuses to suspend or resume a set that is not its users' to suspend and resume.
func checkSwitch(js *jobset.JobSet, p *batch.ActionPreconditions, action string) error {
	if err := checkAttempt(js, p); err != nil {
		return err
	}
	if err := checkUnfinished(js, action); err != nil {
		return err
	}
	switch _, queued := js.Labels[jobsetv1alpha2.QueueNameKey]; {
	case queued && action == resume:
		return conflict(js, "%s decides when the JobSet runs, and starts it as soon as there is quota; if its Workload was deactivated, set "+
			"spec.active of the Workload to true",
			decider(js))
	case queued:
		return conflict(js, "%s decides when the JobSet runs; to %s it, set spec.active of its Workload to false", decider(js), action)
	}
	if owner := decider(js); owner != "" {
		return conflict(js, "%s decides when the JobSet runs; %s the owner instead", owner, action)
	}
	return nil
}

// The controller holds a set when the store was restored from a backup and it is not known what became of the set since. A user ends that:
// by resuming, cancelling or deleting the set, or by an edit that resumes it.

// ReasonResumed is the reason of Held after a user has resumed the set.
const ReasonResumed = reasons.Resumed

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
