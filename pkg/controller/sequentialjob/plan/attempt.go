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

// currentIndex returns the index of the step that runs or is next.
func currentIndex(status *batchv1alpha1.SequentialJobStatus) int {
	return int(ptr.Deref(status.Progress.CurrentIndex, 0))
}

// currentEntry returns what status says about the current step; nil if it has never begun.
func currentEntry(sj *batchv1alpha1.SequentialJob) *batchv1alpha1.SequentialJobStepStatus {
	return entryOf(&sj.Status)
}

func entryOf(status *batchv1alpha1.SequentialJobStatus) *batchv1alpha1.SequentialJobStepStatus {
	if index := currentIndex(status); index >= 0 && index < len(status.Steps) {
		return &status.Steps[index]
	}
	return nil
}

// begunStep returns what status says about the current step if it has begun and not ended; nil otherwise. After a retry from
// an earlier step, later ones are there that have to begin again.
func begunStep(sj *batchv1alpha1.SequentialJob) *batchv1alpha1.SequentialJobStepStatus {
	return begun(&sj.Status)
}

func begun(status *batchv1alpha1.SequentialJobStatus) *batchv1alpha1.SequentialJobStepStatus {
	entry := entryOf(status)
	if entry == nil || !slices.Contains(unended, entry.State) {
		return nil
	}
	return entry
}

// unended are the states of steps that have begun and not ended.
var unended = []batchv1alpha1.StepState{
	batchv1alpha1.StepStarting, batchv1alpha1.StepWaiting, batchv1alpha1.StepRunning, batchv1alpha1.StepSuspended,
}

// status is the next status of a sequence in the making. Only fold changes it.
type status struct {
	o     Observed
	steps []helper.Step
	next  *batchv1alpha1.SequentialJobStatus
	// events are caused by transitions, and plan has the writes of children.
	events []Event
	plan   Plan
}

func newStatus(o Observed) *status {
	return &status{o: o, steps: helper.Steps(&o.SequentialJob.Spec), next: o.SequentialJob.Status.DeepCopy()}
}

func (s *status) index() int { return currentIndex(s.next) }

func (s *status) now() *metav1.Time { return ptr.To(s.o.Now) }

// aboutToRun returns whether a child is needed, which the next decision creates.
func (s *status) aboutToRun() bool {
	entry := begun(s.next)
	return entry != nil && entry.State != batchv1alpha1.StepSuspended && s.o.SequentialJob.DeletionTimestamp == nil
}

// takeUp notes that the controller acts on the present spec.
func (s *status) takeUp() {
	s.next.ObservedGeneration = s.o.SequentialJob.Generation
	if s.next.Progress.CompletedIndices == nil {
		s.next.Progress.CompletedIndices = []int32{}
	}
}

// countChildren counts the children, and those steps that have ended.
func (s *status) countChildren(owned family) {
	s.next.State = batchv1alpha1.SequentialJobState{Active: owned.active, Succeeded: int32(len(s.next.Progress.CompletedIndices))}
	if s.next.Progress.FailedIndex != nil {
		s.next.State.Failed = 1
	}
}

// begin begins a step, or a step that ran before a retry.
func (s *status) begin(index int) {
	step := s.steps[index]
	attempts := int32(1)
	if index < len(s.next.Steps) {
		attempts += s.next.Steps[index].Attempts
	} else {
		s.next.Steps = append(s.next.Steps, batchv1alpha1.SequentialJobStepStatus{})
	}
	s.next.Steps[index] = batchv1alpha1.SequentialJobStepStatus{
		Name: step.Name, Kind: step.Kind(), ChildName: helper.ChildName(s.o.SequentialJob.Name, index),
		State: batchv1alpha1.StepStarting, StartTime: s.now(), Attempts: attempts,
	}
	s.next.Progress.CurrentIndex = ptr.To(int32(index))
	if s.next.StartTime == nil {
		s.next.StartTime = s.now()
	}
	s.put(notSuspended("the sequence was resumed"))
	if !hasReason(s.next, batchv1alpha1.ConditionProgressing, batchv1alpha1.ReasonJobCompleted) {
		s.put(progressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d is about to start", index)))
	}
	s.followClock()
}

// succeed records that the current child has succeeded, and begins the next step unless there is none or the sequence is suspended.
func (s *status) succeed(c Child) {
	index, entry := s.index(), entryOf(s.next)
	entry.State, entry.CompletionTime, entry.ExitCode = batchv1alpha1.StepSucceeded, s.endTime(c), ptr.To(int32(0))
	s.events = append(s.events, normal(batchv1alpha1.ReasonJobCompleted, fmt.Sprintf("Job %d completed successfully", index)))
	s.putAll(untroubled())
	s.addCompleted(index)
	s.next.Progress.CurrentIndex = ptr.To(int32(index + 1))
	switch {
	case index+1 >= len(s.steps):
		s.complete()
	case helper.Suspended(s.o.SequentialJob):
		s.putAll(suspended(true, ""))
		s.followClock()
	default:
		s.put(progressing(batchv1alpha1.ReasonJobCompleted, fmt.Sprintf("Job %d completed, and job %d is next", index, index+1)))
		s.begin(index + 1)
	}
}

func (s *status) addCompleted(index int) {
	if !slices.Contains(s.next.Progress.CompletedIndices, int32(index)) {
		s.next.Progress.CompletedIndices = append(s.next.Progress.CompletedIndices, int32(index))
		slices.Sort(s.next.Progress.CompletedIndices)
	}
}

// complete ends the sequence with success.
func (s *status) complete() {
	const message = "all jobs completed successfully"
	s.next.Progress.CurrentIndex = ptr.To(int32(len(s.steps)))
	s.next.Steps = s.next.Steps[:min(len(s.next.Steps), len(s.steps))]
	s.put(progressing(batchv1alpha1.ReasonCompleted, message))
	s.put(condition{
		Type: batchv1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonAllJobsCompleted, Message: message,
	})
	s.events = append(s.events, normal(batchv1alpha1.ReasonAllJobsCompleted, fmt.Sprintf("Completed %s", countJobs(len(s.steps)))))
	s.end()
}

// fail ends the sequence because a child has failed.
func (s *status) fail(c Child, cause *jobsetv1alpha2.FailureCause) {
	entry := entryOf(s.next)
	entry.FirstCause = cause.DeepCopy()
	if cause != nil {
		entry.ExitCode = copied(cause.ExitCode)
	}
	entry.State, entry.CompletionTime, entry.Reason, entry.Message = batchv1alpha1.StepFailed, s.endTime(c), c.Reason, truncated(c.Message)
	s.failSequence(batchv1alpha1.ReasonJobFailed, c.Reason, fmt.Sprintf("Job %d failed: %s", s.index(), c.Reason))
}

// expire ends the sequence because its time is over. The next decision stops the child.
func (s *status) expire() {
	limit := *s.o.SequentialJob.Spec.ActiveDeadlineSeconds
	s.stopStep(batchv1alpha1.ReasonDeadlineExceeded)
	s.failSequence(batchv1alpha1.ReasonDeadlineExceeded, batchv1alpha1.ReasonDeadlineExceeded,
		fmt.Sprintf("Job %d did not end in time: the sequence was active for %s", s.index(), countSeconds(limit)))
}

// failSequence ends the sequence without success, in the current step.
func (s *status) failSequence(reason, failureReason, message string) {
	s.next.Progress.FailedIndex, s.next.Progress.FailureReason = ptr.To(int32(s.index())), failureReason
	s.put(failed(reason, message))
	s.events = append(s.events, warning(reason, message))
	s.noteFailure(reason, message)
}

// noteFailure records what follows from the failure of the sequence.
func (s *status) noteFailure(reason, message string) {
	s.put(progressing(reason, message))
	s.put(notAvailable(batchv1alpha1.ReasonFailed, message))
	s.end()
}

// stopStep records that the current step is stopped because the sequence has failed.
func (s *status) stopStep(reason string) {
	if entry := begun(s.next); entry != nil {
		entry.State, entry.CompletionTime, entry.Reason = batchv1alpha1.StepFailed, s.now(), reason
	}
}

// end records what holds at the end of the sequence, however it ended.
func (s *status) end() {
	s.putAll(untroubled())
	if isTrue(s.next, batchv1alpha1.ConditionComplete) {
		s.put(available())
	}
	s.put(notSuspended("the sequence has ended"))
	if s.next.CompletionTime == nil {
		s.next.CompletionTime = s.now()
	}
	s.followClock()
}

// conclude completes the status of a sequence that has ended, also by an action of a user. current is the child of the step that was
// stopped.
func (s *status) conclude(current *Child) {
	s.next.ObservedGeneration = s.o.SequentialJob.Generation
	if finished := helper.Finished(s.o.SequentialJob); finished.Type == batchv1alpha1.ConditionFailed {
		s.completeFailure(current, finished)
	}
	s.end()
}

// completeFailure records what the cancellation of the sequence by a user leaves to the controller.
func (s *status) completeFailure(current *Child, finished *metav1.Condition) {
	entry := begun(s.next)
	switch {
	case entry == nil:
	case current != nil && current.End == Succeeded:
		entry.ChildUID, entry.State, entry.CompletionTime, entry.ExitCode = current.UID, batchv1alpha1.StepSucceeded, s.endTime(*current),
			ptr.To(int32(0))
		s.next.Progress.CompletedIndices = append(s.next.Progress.CompletedIndices, int32(s.index()))
	default:
		s.stopStep(finished.Reason)
		s.next.Progress.FailedIndex, s.next.Progress.FailureReason = ptr.To(int32(s.index())), finished.Reason
	}
	if s.next.Progress.CompletedIndices == nil {
		s.next.Progress.CompletedIndices = []int32{}
	}
	s.noteFailure(finished.Reason, finished.Message)
}

// endTime returns when a child ended, which is not after now, and not before its step began. The clock of the server
// that has Jobs may differ from ours: one that says that a child was created before its step began is behind by at
// least that much.
func (s *status) endTime(c Child) *metav1.Time {
	if c.EndTime.IsZero() {
		return s.now()
	}
	end, start := c.EndTime.Time, entryOf(s.next).StartTime
	if start != nil && !c.Created.IsZero() {
		end = end.Add(max(0, start.Sub(c.Created.Time)))
	}
	if end.After(s.o.Now.Time) || start != nil && end.Before(start.Time) {
		return s.now()
	}
	return &metav1.Time{Time: end}
}
