// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// carryOut changes the next status of a sequence as a transition does, and returns the events about that. The clock of the deadline follows
// later.
func carryOut(q *sequence, next *batchv1alpha1.SequentialJobStatus, m move) (events []Event) {
	switch m.kind {
	case takeUp:
		next.ObservedGeneration = q.SequentialJob.Generation
		noteProgress(next)
	case begin:
		events = beginStep(q, next, m.index)
	case succeed:
		events = stepSucceeded(q, next, *m.child)
	case fail:
		events = stepFailed(q, next, *m.child, m.cause)
	case expire:
		events = deadlineExceeded(q, next)
	case complete:
		events = allCompleted(q, next)
	case conclude:
		events = concludeEnd(q, next, m.child)
	case reopen:
		events = reopened(q, next)
	case takeOver:
		events = takenOver(q, next, member{Child: *m.child, index: m.index})
	case standStill:
		next.ActiveSince = nil
	}
	return events
}

// noteProgress has the status list the completed steps, even if there are none.
func noteProgress(next *batchv1alpha1.SequentialJobStatus) {
	if next.Progress.CompletedIndices == nil {
		next.Progress.CompletedIndices = []int32{}
	}
}

// beginStep begins a step, or a step that ran before a retry.
func beginStep(q *sequence, next *batchv1alpha1.SequentialJobStatus, index int) []Event {
	step, attempts := q.steps[index], int32(1)
	if index < len(next.Steps) {
		attempts += next.Steps[index].Attempts
	} else {
		next.Steps = append(next.Steps, batchv1alpha1.SequentialJobStepStatus{})
	}
	next.Steps[index] = batchv1alpha1.SequentialJobStepStatus{
		Name: step.Name, Kind: step.Kind(), ChildName: helper.ChildName(q.SequentialJob.Name, index),
		State: batchv1alpha1.StepStarting, StartTime: ptr.To(q.Now), Attempts: attempts,
	}
	next.Progress.CurrentIndex = ptr.To(int32(index))
	noteStart(next, q.Now)
	conditions := []condition{notSuspended("the sequence was resumed")}
	if !hasReason(next, batchv1alpha1.ConditionProgressing, batchv1alpha1.ReasonJobCompleted) {
		conditions = append(conditions, progressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d is about to start", index)))
	}
	return put(next, q.Now, conditions...)
}

// noteStart notes when the sequence has started.
func noteStart(next *batchv1alpha1.SequentialJobStatus, now metav1.Time) {
	if next.StartTime == nil {
		next.StartTime = &now
	}
}

// stepSucceeded records that the current child has succeeded, and begins the next step unless there is none or the sequence is suspended.
func stepSucceeded(q *sequence, next *batchv1alpha1.SequentialJobStatus, c Child) []Event {
	index, entry := currentIndex(next), entryOf(next)
	entry.State, entry.CompletionTime, entry.ExitCode = batchv1alpha1.StepSucceeded, endTime(q, entry, c), ptr.To(int32(0))
	events := []Event{normal(batchv1alpha1.ReasonJobCompleted, fmt.Sprintf("Job %d completed successfully", index))}
	endTroubles(next, q.Now)
	addCompleted(next, index)
	next.Progress.CurrentIndex = ptr.To(int32(index + 1))
	switch {
	case index+1 >= len(q.steps):
		return append(events, allCompleted(q, next)...)
	case q.suspended:
		return append(events, put(next, q.Now, suspended(true, "")...)...)
	}
	events = append(events, put(next, q.Now, progressing(batchv1alpha1.ReasonJobCompleted,
		fmt.Sprintf("Job %d completed, and job %d is next", index, index+1)))...)
	return append(events, beginStep(q, next, index+1)...)
}

func addCompleted(next *batchv1alpha1.SequentialJobStatus, index int) {
	if !slices.Contains(next.Progress.CompletedIndices, int32(index)) {
		next.Progress.CompletedIndices = append(next.Progress.CompletedIndices, int32(index))
		slices.Sort(next.Progress.CompletedIndices)
	}
}

// allCompleted ends the sequence with success.
func allCompleted(q *sequence, next *batchv1alpha1.SequentialJobStatus) []Event {
	const message = "all jobs completed successfully"
	next.Progress.CurrentIndex = ptr.To(int32(len(q.steps)))
	next.Steps = next.Steps[:min(len(next.Steps), len(q.steps))]
	events := put(next, q.Now, progressing(batchv1alpha1.ReasonCompleted, message), condition{
		Type: batchv1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonAllJobsCompleted, Message: message,
	})
	events = append(events, normal(batchv1alpha1.ReasonAllJobsCompleted, fmt.Sprintf("Completed %s", countJobs(len(q.steps)))))
	return append(events, endSequence(q, next)...)
}

// stepFailed ends the sequence because a child has failed.
func stepFailed(q *sequence, next *batchv1alpha1.SequentialJobStatus, c Child, cause *jobsetv1alpha2.FailureCause) []Event {
	entry := entryOf(next)
	entry.FirstCause = cause.DeepCopy()
	if cause != nil {
		entry.ExitCode = copied(cause.ExitCode)
	}
	entry.State, entry.CompletionTime = batchv1alpha1.StepFailed, endTime(q, entry, c)
	entry.Reason, entry.Message = c.Reason, truncated(c.Message)
	return failSequence(q, next, batchv1alpha1.ReasonJobFailed, c.Reason, fmt.Sprintf("Job %d failed: %s", currentIndex(next), c.Reason))
}

// deadlineExceeded ends the sequence because its time is over. The next decision stops the child.
func deadlineExceeded(q *sequence, next *batchv1alpha1.SequentialJobStatus) []Event {
	limit := *q.SequentialJob.Spec.ActiveDeadlineSeconds
	stopStep(next, q.Now, batchv1alpha1.ReasonDeadlineExceeded)
	return failSequence(q, next, batchv1alpha1.ReasonDeadlineExceeded, batchv1alpha1.ReasonDeadlineExceeded,
		fmt.Sprintf("Job %d did not end in time: the sequence was active for %s", currentIndex(next), countSeconds(limit)))
}

// failSequence ends the sequence without success, in the current step.
func failSequence(q *sequence, next *batchv1alpha1.SequentialJobStatus, reason, failureReason, message string) []Event {
	next.Progress.FailedIndex, next.Progress.FailureReason = ptr.To(int32(currentIndex(next))), failureReason
	events := append(put(next, q.Now, failed(reason, message)), warning(reason, message))
	return append(events, noteFailure(q, next, reason, message)...)
}

// noteFailure records what follows from the failure of the sequence.
func noteFailure(q *sequence, next *batchv1alpha1.SequentialJobStatus, reason, message string) []Event {
	events := put(next, q.Now, progressing(reason, message), notAvailable(batchv1alpha1.ReasonFailed, message))
	return append(events, endSequence(q, next)...)
}

// stopStep records that the current step is stopped because the sequence has failed.
func stopStep(next *batchv1alpha1.SequentialJobStatus, now metav1.Time, reason string) {
	if entry := begun(next); entry != nil {
		entry.State, entry.CompletionTime, entry.Reason = batchv1alpha1.StepFailed, &now, reason
	}
}

// endSequence records what holds at the end of the sequence, however it ended.
func endSequence(q *sequence, next *batchv1alpha1.SequentialJobStatus) []Event {
	endTroubles(next, q.Now)
	var conditions []condition
	if isTrue(next, batchv1alpha1.ConditionComplete) {
		conditions = append(conditions, available())
	}
	if next.CompletionTime == nil {
		next.CompletionTime = ptr.To(q.Now)
	}
	return put(next, q.Now, append(conditions, notSuspended("the sequence has ended"))...)
}

// concludeEnd completes the status of a sequence that has ended, also by an action of a user. current is the child of the step that was
// stopped.
func concludeEnd(q *sequence, next *batchv1alpha1.SequentialJobStatus, current *Child) (events []Event) {
	next.ObservedGeneration = q.SequentialJob.Generation
	if q.finished.Type == batchv1alpha1.ConditionFailed {
		events = completeFailure(q, next, current)
	}
	return append(events, endSequence(q, next)...)
}

// completeFailure records what the cancellation of the sequence by a user leaves to the controller.
func completeFailure(q *sequence, next *batchv1alpha1.SequentialJobStatus, current *Child) []Event {
	switch entry := begun(next); {
	case entry == nil:
	case current != nil && current.End == Succeeded:
		entry.ChildUID, entry.State, entry.CompletionTime, entry.ExitCode = current.UID, batchv1alpha1.StepSucceeded, endTime(q, entry, *current),
			ptr.To(int32(0))
		next.Progress.CompletedIndices = append(next.Progress.CompletedIndices, int32(currentIndex(next)))
	default:
		stopStep(next, q.Now, q.finished.Reason)
		next.Progress.FailedIndex, next.Progress.FailureReason = ptr.To(int32(currentIndex(next))), q.finished.Reason
	}
	noteProgress(next)
	return noteFailure(q, next, q.finished.Reason, q.finished.Message)
}

// endTime returns when a child of a step ended, which is not after now, and not before its step began. The clock of the server
// that has Jobs may differ from the clock of the controller: one that says that a child was created before its step began is behind by at
// least that much.
func endTime(q *sequence, entry *batchv1alpha1.SequentialJobStepStatus, c Child) *metav1.Time {
	if c.EndTime.IsZero() {
		return ptr.To(q.Now)
	}
	end, start := c.EndTime.Time, entry.StartTime
	if start != nil && !c.Created.IsZero() {
		end = end.Add(max(0, start.Sub(c.Created.Time)))
	}
	if end.After(q.Now.Time) || start != nil && end.Before(start.Time) {
		return ptr.To(q.Now)
	}
	return &metav1.Time{Time: end}
}
