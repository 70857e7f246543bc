// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

func (b *statusBuilder) index() int { return currentIndex(b.next) }

// aboutToRun returns whether a child is needed, which the next decision creates.
func (b *statusBuilder) aboutToRun() bool {
	entry := begun(b.next)
	return entry != nil && entry.State != batchv1alpha1.StepSuspended && b.o.SequentialJob.DeletionTimestamp == nil
}

// begin begins a step, or a step that ran before a retry.
func (b *statusBuilder) begin(index int) {
	step := b.steps[index]
	attempts := int32(1)
	if index < len(b.next.Steps) {
		attempts += b.next.Steps[index].Attempts
	} else {
		b.next.Steps = append(b.next.Steps, batchv1alpha1.SequentialJobStepStatus{})
	}
	b.next.Steps[index] = batchv1alpha1.SequentialJobStepStatus{
		Name: step.Name, Kind: step.Kind(), ChildName: helper.ChildName(b.o.SequentialJob.Name, index),
		State: batchv1alpha1.StepStarting, StartTime: b.now(), Attempts: attempts,
	}
	b.next.Progress.CurrentIndex = ptr.To(int32(index))
	if b.next.StartTime == nil {
		b.next.StartTime = b.now()
	}
	b.set(batchv1alpha1.ConditionSuspended, metav1.ConditionFalse, batchv1alpha1.ReasonResumed, "the sequence was resumed")
	if !b.hasReason(batchv1alpha1.ConditionProgressing, batchv1alpha1.ReasonJobCompleted) {
		b.setProgressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d is about to start", index))
	}
	b.followClock()
}

// beginAgain begins a new attempt of the current step, because its child is gone although it had not ended.
func (b *statusBuilder) beginAgain() {
	index := b.index()
	b.event(corev1.EventTypeWarning, reasonJobVanished, fmt.Sprintf("Job %d was deleted before it ended, and runs again", index))
	b.begin(index)
}

// endStep records the end of the current child.
func (b *statusBuilder) endStep(c Child) {
	b.see(c)
	if c.End == Succeeded {
		b.succeed(c)
		return
	}
	b.fail(c)
}

func (b *statusBuilder) succeed(c Child) {
	index := b.index()
	entry := entryOf(b.next)
	entry.State, entry.CompletionTime, entry.ExitCode = batchv1alpha1.StepSucceeded, b.endTime(c), ptr.To(int32(0))
	b.event(corev1.EventTypeNormal, batchv1alpha1.ReasonJobCompleted, fmt.Sprintf("Job %d completed successfully", index))
	b.endTroubles()
	if !slices.Contains(b.next.Progress.CompletedIndices, int32(index)) {
		b.next.Progress.CompletedIndices = append(b.next.Progress.CompletedIndices, int32(index))
		slices.Sort(b.next.Progress.CompletedIndices)
	}
	b.next.Progress.CurrentIndex = ptr.To(int32(index + 1))
	switch {
	case index+1 >= len(b.steps):
		b.complete()
	case helper.Suspended(b.o.SequentialJob):
		b.setSuspended(true, "")
	default:
		b.setProgressing(batchv1alpha1.ReasonJobCompleted, fmt.Sprintf("Job %d completed, and job %d is next", index, index+1))
		b.begin(index + 1)
	}
}

// complete ends the sequence with success.
func (b *statusBuilder) complete() {
	const message = "all jobs completed successfully"
	b.next.Progress.CurrentIndex = ptr.To(int32(len(b.steps)))
	b.next.Steps = b.next.Steps[:min(len(b.next.Steps), len(b.steps))]
	b.setProgressing(batchv1alpha1.ReasonCompleted, message)
	b.set(batchv1alpha1.ConditionComplete, metav1.ConditionTrue, batchv1alpha1.ReasonAllJobsCompleted, message)
	b.event(corev1.EventTypeNormal, batchv1alpha1.ReasonAllJobsCompleted, fmt.Sprintf("Completed %s", countJobs(len(b.steps))))
	b.end()
}

// fail ends the sequence because a child has failed.
func (b *statusBuilder) fail(c Child) {
	cause := c.FirstCause
	if c.Kind == batchv1alpha1.StepKindJob {
		cause = b.o.Causes[c.UID]
		b.wantCause(c, cause)
	}
	entry := entryOf(b.next)
	entry.FirstCause = cause.DeepCopy()
	if cause != nil {
		entry.ExitCode = copied(cause.ExitCode)
	}
	entry.State, entry.CompletionTime, entry.Reason, entry.Message = batchv1alpha1.StepFailed, b.endTime(c), c.Reason, truncated(c.Message)
	b.failSequence(batchv1alpha1.ReasonJobFailed, c.Reason, fmt.Sprintf("Job %d failed: %s", b.index(), c.Reason))
}

// failSequence ends the sequence without success, in the current step.
func (b *statusBuilder) failSequence(reason, failureReason, message string) {
	b.next.Progress.FailedIndex, b.next.Progress.FailureReason = ptr.To(int32(b.index())), failureReason
	b.set(batchv1alpha1.ConditionFailed, metav1.ConditionTrue, reason, message)
	b.event(corev1.EventTypeWarning, reason, message)
	b.noteFailure(reason, message)
}

// noteFailure records what follows from the failure of the sequence.
func (b *statusBuilder) noteFailure(reason, message string) {
	b.setProgressing(reason, message)
	b.set(batchv1alpha1.ConditionAvailable, metav1.ConditionFalse, batchv1alpha1.ReasonFailed, message)
	b.end()
}

// end records what holds at the end of the sequence, however it ended.
func (b *statusBuilder) end() {
	b.endTroubles()
	if b.is(batchv1alpha1.ConditionComplete) {
		b.setAvailable()
	}
	b.set(batchv1alpha1.ConditionSuspended, metav1.ConditionFalse, batchv1alpha1.ReasonResumed, "the sequence has ended")
	if b.next.CompletionTime == nil {
		b.next.CompletionTime = b.now()
	}
	b.followClock()
}

// see records the child of the current step, and that it has started.
func (b *statusBuilder) see(c Child) {
	entry := entryOf(b.next)
	entry.ChildUID = c.UID
	started := entry.State == batchv1alpha1.StepStarting || entry.State == batchv1alpha1.StepWaiting
	if started && (!c.Queued || !c.Suspended || c.End != "") {
		b.event(corev1.EventTypeNormal, batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Started job %d", b.index()))
	}
}

// wantCause asks for the first cause of the failure of a Job that is not known yet.
func (b *statusBuilder) wantCause(c Child, known *jobsetv1alpha2.FailureCause) {
	if known == nil {
		b.failedJob = &FailedJob{ChildRef: c.ChildRef, InContainers: c.InContainers, Failure: failureOf(c)}
	}
}

// endTime returns when a child ended, which is not after now, and not before its step began. The clock of the server
// that has Jobs may differ from ours: one that says that a child was created before its step began is behind by at
// least that much.
func (b *statusBuilder) endTime(c Child) *metav1.Time {
	if c.EndTime.IsZero() {
		return b.now()
	}
	end, start := c.EndTime.Time, entryOf(b.next).StartTime
	if start != nil && !c.Created.IsZero() {
		end = end.Add(max(0, start.Sub(c.Created.Time)))
	}
	if end.After(b.o.Now.Time) || start != nil && end.Before(start.Time) {
		return b.now()
	}
	return &metav1.Time{Time: end}
}

func (b *statusBuilder) now() *metav1.Time { return ptr.To(b.o.Now) }

func countJobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// maxMessage is the length of the message of a step in bytes.
const maxMessage = 1024

func truncated(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "")
}
