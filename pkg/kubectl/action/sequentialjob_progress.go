// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// sequenceProgress returns how far a sequence is on the way to the goal, after an action that got the answer.
func sequenceProgress(goal Goal, sj *batchv1alpha1.SequentialJob, answer Status) Progress {
	switch {
	case sj.UID != answer.UID:
		return Progress{Failure: "the sequence was deleted, and another one created under its name"}
	case goal == GoalStopped:
		// The finalizer is there before a child is, and goes when none is active.
		if sj.Status.State.Active > 0 || slices.Contains(sj.Finalizers, batchv1alpha1.SequentialJobFinalizer) {
			return Progress{Text: "1 child to be deleted"}
		}
		return Progress{Reached: true, Text: "no child is active"}
	case goal == GoalSuspended:
		return sequenceSuspension(sj)
	}
	return sequenceRuns(sj, answer)
}

func sequenceSuspension(sj *batchv1alpha1.SequentialJob) Progress {
	switch {
	case helper.Finished(sj) != nil:
		return Progress{Failure: "the sequence finished in the meantime: " + sequenceEnd(sj)}
	case !helper.Suspended(sj):
		return Progress{Failure: "the sequence was resumed in the meantime" + actedBy(sj, batchv1alpha1.ActionResume)}
	case meta.IsStatusConditionTrue(sj.Status.Conditions, batchv1alpha1.ConditionSuspended):
		return Progress{Reached: true, Text: "suspended, no child is active"}
	}
	return Progress{Text: "1 child to be suspended"}
}

// sequenceRuns is reached when the step of the answer, or a later one, runs.
func sequenceRuns(sj *batchv1alpha1.SequentialJob, answer Status) Progress {
	step, index := helper.CurrentStep(&sj.Status), helper.CurrentIndex(&sj.Status)
	finished := helper.Finished(sj)
	switch {
	case finished != nil && finished.Type == batchv1alpha1.ConditionComplete:
		return Progress{Reached: true, Text: "completed"}
	case finished != nil:
		return Progress{Failure: sequenceEnd(sj)}
	case helper.Suspended(sj):
		return Progress{Failure: "the sequence is suspended" + actedBy(sj, batchv1alpha1.ActionSuspend) +
			"; run `kubectl jobset resume sqj/" + sj.Name + "` to resume it"}
	}
	place := fmt.Sprintf("step %d/%d", index+1, helper.StepCount(&sj.Spec))
	if step == nil || step.State == batchv1alpha1.StepPending {
		return Progress{Text: place + " is about to start"}
	}
	text := fmt.Sprintf("%s, %s, attempt %d", place, step.Name, step.Attempts)
	switch step.State {
	case batchv1alpha1.StepRunning:
		return Progress{Reached: step.Name != answer.Step || step.Attempts >= answer.Attempt, Text: text + " runs"}
	case batchv1alpha1.StepWaiting:
		return Progress{Text: text + " waits for quota"}
	}
	return Progress{Text: text + " starts"}
}

// sequenceEnd describes how a sequence ended, with the first cause if it is known.
func sequenceEnd(sj *batchv1alpha1.SequentialJob) string {
	c := helper.Finished(sj)
	text := fmt.Sprintf("%s (%s)", c.Type, c.Reason)
	if c.Message != "" {
		text += ": " + c.Message
	}
	if step := helper.CurrentStep(&sj.Status); step != nil && step.FirstCause != nil {
		text += "; first cause: " + cause(step.FirstCause)
	}
	return text
}

func actedBy(sj *batchv1alpha1.SequentialJob, action batchv1alpha1.SequentialJobAction) string {
	if last := sj.Status.LastAction; last != nil && last.Action == action && last.User != "" {
		return " by " + last.User
	}
	return ""
}
