// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

// RecordEdit records in the status what an edit of a set says about its attempt: the checkpoint that the job reports, and who suspended or
// resumed it. The changed set has the status of the previous one, and may share memory with it.
func RecordEdit(next, prev *jobset.JobSet, call Call) {
	recordCheckpoint(next, prev, call)
	recordSwitch(next, prev, call)
}

// recordCheckpoint records the step in the annotation, if this edit changed it.
func recordCheckpoint(next, prev *jobset.JobSet, call Call) {
	step, ok := validation.CheckpointStep(next)
	if !ok || next.Annotations[jobset.CheckpointStepKey] == prev.Annotations[jobset.CheckpointStepKey] {
		return
	}
	next.Status = *next.Status.DeepCopy()
	edit(&next.Status, func(s *jobsetv1alpha2.JobSetStatus) { helper.RecordCheckpoint(s, step, call.Now) })
}

// recordSwitch records who suspended or resumed a set by changing spec.suspend, as the actions do.
//
// It records nothing for sets of a queue or of an owner: these suspend sets to preempt them and resume them to admit them, and
// the controller recognizes a preemption by an attempt that no user ended.
func recordSwitch(next, prev *jobset.JobSet, call Call) {
	if call.User == "" || suspended(next) == suspended(prev) || decider(next) != "" || decider(prev) != "" || checkManaged(prev) != nil ||
		finishedAs(prev) != "" {
		return
	}
	next.Status = *next.Status.DeepCopy()
	if suspended(next) {
		end(&next.Status, jobset.OutcomeSuspended, call.user(), "", call.Now)
		return
	}
	endHold(next, "", call)
	end(&next.Status, jobset.OutcomeSuspended, "", "", call.Now) // unless it was recorded when it was suspended
	begin(&next.Status, jobset.Attempt{
		Number: next.Status.Restarts + 1, Trigger: jobset.TriggerResume, Scope: jobset.ScopeJobSet, User: call.user(),
	}, call.Now)
}
