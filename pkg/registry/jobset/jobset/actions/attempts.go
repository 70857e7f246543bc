// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

// Versioned returns the versioned form of a set, which shares what the set points to.
func Versioned(js *jobset.JobSet) *jobsetv1alpha2.JobSet {
	var versioned jobsetv1alpha2.JobSet
	utilruntime.Must(jobsetv1alpha2.Convert_jobset_JobSet_To_v1alpha2_JobSet(js, &versioned, nil))
	return &versioned
}

// edit changes a status with the functions for its versioned form, which shares what the status points to.
func edit(status *jobset.JobSetStatus, change func(*jobsetv1alpha2.JobSetStatus)) {
	var versioned jobsetv1alpha2.JobSetStatus
	utilruntime.Must(jobsetv1alpha2.Convert_jobset_JobSetStatus_To_v1alpha2_JobSetStatus(status, &versioned, nil))
	change(&versioned)
	utilruntime.Must(jobsetv1alpha2.Convert_v1alpha2_JobSetStatus_To_jobset_JobSetStatus(&versioned, status, nil))
}

// Current returns the newest attempt of a set; nil if none was recorded yet.
func Current(status *jobset.JobSetStatus) *jobset.Attempt {
	if len(status.Attempts) == 0 {
		return nil
	}
	return &status.Attempts[len(status.Attempts)-1]
}

func currentNumber(status *jobset.JobSetStatus) int32 {
	if current := Current(status); current != nil {
		return current.Number
	}
	return 0
}

// following returns the entry that came after the attempt of the number; nil if there is none, or if it was dropped since.
// After 0, which stands for no attempts yet, comes the first that was ever recorded. That of a set from before attempts
// were recorded has another number than 1; so has the first in a full list, before which others may have been.
func following(status *jobset.JobSetStatus, number int32) *jobset.Attempt {
	if number == 0 {
		if n := len(status.Attempts); n == 0 || n == jobset.MaxAttempts && status.Attempts[0].Number != 1 {
			return nil
		}
		return &status.Attempts[0]
	}
	for i := range status.Attempts {
		if status.Attempts[i].Number == number+1 {
			return &status.Attempts[i]
		}
	}
	return nil
}

// end ends the attempt that runs, and returns it; nil if none does.
func end(status *jobset.JobSetStatus, outcome jobset.AttemptOutcome, user, reason string, now time.Time) *jobset.Attempt {
	ended := false
	edit(status, func(s *jobsetv1alpha2.JobSetStatus) {
		ended = helper.EndAttempt(s, jobsetv1alpha2.AttemptOutcome(outcome), user, reason, now) != nil
	})
	if !ended {
		return nil
	}
	return Current(status)
}

// begin appends an attempt and returns it. Its number is used if it is the first to be recorded.
func begin(status *jobset.JobSetStatus, entry jobset.Attempt, now time.Time) *jobset.Attempt {
	var next jobsetv1alpha2.Attempt
	utilruntime.Must(jobsetv1alpha2.Convert_jobset_Attempt_To_v1alpha2_Attempt(&entry, &next, nil))
	edit(status, func(s *jobsetv1alpha2.JobSetStatus) { helper.BeginAttempt(s, next, now) })
	return Current(status)
}

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
