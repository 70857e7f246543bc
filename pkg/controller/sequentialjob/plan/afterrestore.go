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
)

// After the store was restored from a backup, a sequence is as old as the backup, and so are children that are JobSets, while Jobs are
// as they are now. Children are created one after the other, so that the newest one says how far the sequence was. Its step and attempt
// are taken over; the steps before it have succeeded. Where no child says what became of the sequence, it is held until a person decides:
//
//   - a step has begun, and its child is gone: it may have ended and been deleted, with all that followed;
//   - the next step is about to begin, and its child would not be there even if it had run: JobSets are as old as the backup, and a child
//     with a time to live of its own may be over;
//   - the sequence is suspended and its child runs, or the newest child is of a step that cannot be taken over, because it is an earlier
//     one or the restored spec does not have it: what runs would be stopped.
//
// The hold is a condition. It ends with the action resume, with an edit that resumes the sequence, or when the child of a sequence that
// is not suspended runs after all. All this is about sequences whose status no controller has written since the restore.
// One on which a user has acted since is not held.

// reasonProgressTakenOver is the reason of the event about progress of which only the children know.
const reasonProgressTakenOver = "ProgressTakenOver"

// restoreMatters returns whether the decision on a snapshot depends on Observed.Restored.
func restoreMatters(q *sequence) bool {
	switch {
	case q.SequentialJob.DeletionTimestamp != nil, helper.ManagedElsewhere(q.SequentialJob), helper.Held(q.SequentialJob):
		return false
	case q.finished != nil:
		return q.finished.Type == batchv1alpha1.ConditionFailed && ahead(q) != nil
	}
	return ahead(q) != nil || whyHeld(q) != ""
}

// ahead returns the newest child if it is of a later attempt of its step than the status knows; nil if it is not.
func ahead(q *sequence) *member {
	var newest *member
	for i := range q.Children {
		m := &member{Child: q.Children[i], index: indexOf(q.SequentialJob, q.Children[i].Name)}
		if !m.Deleting && m.index >= 0 && (newest == nil || newest.olderThan(m)) {
			newest = m
		}
	}
	if newest == nil || newest.Attempt <= attemptsOf(&q.SequentialJob.Status, newest.index) {
		return nil
	}
	return newest
}

// olderThan returns whether another child was created later. Times are in seconds; of two children that were created in the same one, only
// the later one can run.
func (m *member) olderThan(other *member) bool {
	switch {
	case !m.Created.Equal(&other.Created):
		return m.Created.Before(&other.Created)
	case (m.End == "") != (other.End == ""):
		return other.End == ""
	}
	return m.index < other.index
}

// attemptsOf returns how many attempts of a step the status knows.
func attemptsOf(status *batchv1alpha1.SequentialJobStatus, index int) int32 {
	if index >= len(status.Steps) {
		return 0
	}
	return status.Steps[index].Attempts
}

// whyHeld returns why a sequence that was not written since the restore is held, if no child is ahead of it; "" if it is not.
func whyHeld(q *sequence) string {
	child := presentChild(q)
	switch {
	case q.suspended:
		if child != nil && runsAlthoughSuspended(q, child) {
			return messageRunsSuspended(q.index)
		}
	case q.begun && child == nil && !oldAttemptExists(q):
		return fmt.Sprintf("job %d had started, but does not exist: it may have ended or been deleted since", q.index)
	case len(q.SequentialJob.Status.Steps) > 0 && !q.begun:
		return whyNextHeld(q, q.index)
	case q.begun && child != nil && child.End == Succeeded:
		return whyNextHeld(q, q.index+1)
	}
	return ""
}

// whyNextHeld returns why a sequence is held before the step that is next; "" if it is not.
func whyNextHeld(q *sequence, index int) string {
	if mayBeGone(q, index) {
		return fmt.Sprintf("job %d is next, but may have run since", index)
	}
	return ""
}

// mayBeGone returns whether a step may have run without leaving its child.
func mayBeGone(q *sequence, index int) bool {
	return index < len(q.steps) && (q.steps[index].JobSet != nil || ttlOf(q.steps[index]) != nil)
}

// runsAlthoughSuspended returns whether a child of a suspended sequence runs, so that the sequence was resumed since the backup.
func runsAlthoughSuspended(q *sequence, child *Child) bool {
	return child.End == "" && !child.Suspended && !q.Restored.Value().Edited
}

func messageRunsSuspended(index int) string {
	return fmt.Sprintf("the sequence is suspended, but job %d runs: it is left alone", index)
}

// presentChild returns the child of the current attempt of the current step, unless it is being deleted; nil if there is none.
func presentChild(q *sequence) *Child {
	for i := range q.Children {
		if c := &q.Children[i]; !c.Deleting && isCurrent(q.SequentialJob, *c) {
			return c
		}
	}
	return nil
}

// oldAttemptExists returns whether a child of an earlier attempt of the current step exists, whose name later ones have, too: then none has
// come after it.
func oldAttemptExists(q *sequence) bool {
	return slices.ContainsFunc(q.Children, func(c Child) bool { return c.Name == q.entry.ChildName && c.Attempt < q.entry.Attempts })
}

// reopens returns whether the sequence had failed when the backup was made, and was retried since.
func reopens(q *sequence) bool {
	return q.finished != nil && q.finished.Type != batchv1alpha1.ConditionComplete && restoredOrHeld(q) && ahead(q) != nil
}

// restoredOrHeld returns whether no controller has written the sequence since the store was restored, or the sequence is held since then.
func restoredOrHeld(q *sequence) bool {
	_, restored := q.Restored.Get()
	return restored || helper.Held(q.SequentialJob)
}

// reopenRetried takes back that a sequence had failed when the backup was made, if it was retried since.
func reopenRetried(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	if !reopens(q) {
		return wants{}
	}
	return wants{move: move{kind: reopen}}
}

// afterRestore takes over the progress that children show, and holds the sequence if they do not show it.
func afterRestore(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	if !restoredOrHeld(q) {
		return wants{}
	}
	wasHeld := helper.Held(q.SequentialJob)
	switch newest := ahead(q); {
	case newest != nil && !follows(q, newest):
		return hold(q, fmt.Sprintf("child %s is of an attempt that the sequence does not know: it is left alone", newest.Name))
	case newest != nil:
		return wants{move: move{kind: takeOver, index: newest.index, child: &newest.Child}, clock: true}
	case wasHeld && !runsAgain(q):
		return wants{over: true}
	case wasHeld:
		return wants{conditions: []condition{notHeld("the current job runs")}}
	}
	// A sequence on which a user has acted since the restore is not held.
	if why := whyHeld(q); why != "" && !q.Restored.Value().Acted {
		return hold(q, why)
	}
	return wants{}
}

// afterTakeOver ends a hold once the step of the newest child was taken over, or holds a suspended sequence whose child runs.
func afterTakeOver(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	if !restoredOrHeld(q) {
		return wants{}
	}
	wasHeld := helper.Held(q.SequentialJob)
	switch newest := ahead(q); {
	case newest == nil:
		return wants{}
	case wasHeld && !q.suspended:
		return wants{conditions: []condition{notHeld("the current job runs")}, over: true}
	case q.suspended && runsAlthoughSuspended(q, &newest.Child):
		return hold(q, messageRunsSuspended(newest.index))
	}
	return wants{over: true}
}

// follows returns whether the step of a child can be taken over. A child of a step that the sequence has behind it is left alone.
func follows(q *sequence, newest *member) bool {
	return newest.index >= q.index && newest.index < len(q.steps)
}

// runsAgain returns whether the child of the current step of a held sequence runs.
func runsAgain(q *sequence) bool {
	c := presentChild(q)
	return c != nil && c.End == "" && !q.suspended
}

// hold begins the hold. The clock of the deadline stands still meanwhile, and nothing else happens.
func hold(q *sequence, why string) wants {
	sj := q.SequentialJob
	message := fmt.Sprintf("the store was restored from a backup in which %s; delete the sequence, or let it continue with `kubectl jobset "+
		"resume sqj/%s -n %s`",
		why, sj.Name, sj.Namespace)
	return wants{
		conditions: []condition{{
			Type: batchv1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonRestoredFromBackup, Message: message,
			event: warning(batchv1alpha1.ReasonRestoredFromBackup, message),
		}, progressing(batchv1alpha1.ReasonRestoredFromBackup, "the sequence is held")},
		move: move{kind: standStill}, over: true,
	}
}

// reopened makes a sequence that had failed one that runs.
func reopened(q *sequence, next *batchv1alpha1.SequentialJobStatus) []Event {
	const message = "the store was restored from a backup, and the sequence was retried since"
	next.Progress.FailedIndex, next.Progress.FailureReason, next.CompletionTime = nil, "", nil
	return put(next, q.Now, notFailed(batchv1alpha1.ReasonRestoredFromBackup, message), available())
}

// takenOver makes the step of a child the current one.
func takenOver(q *sequence, next *batchv1alpha1.SequentialJobStatus, newest member) []Event {
	for index := q.index; index < newest.index; index++ {
		takeOverSucceeded(q, next, index)
	}
	for index := newest.index + 1; index < len(next.Steps); index++ { // these ran before a retry
		next.Steps[index].State = batchv1alpha1.StepPending
	}
	stepAt(q, next, newest.index, batchv1alpha1.StepStarting, &newest.Child)
	next.Progress.CurrentIndex = ptr.To(int32(newest.index))
	noteStart(next, q.Now)
	return append(put(next, q.Now, progressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d runs", newest.index))),
		normal(reasonProgressTakenOver, fmt.Sprintf("The store was restored from a backup. Attempt %d of job %d was taken over from %s %s",
			newest.Attempt, newest.index, newest.Kind, newest.Name)))
}

// takeOverSucceeded records that a step has succeeded, because a later one has begun.
func takeOverSucceeded(q *sequence, next *batchv1alpha1.SequentialJobStatus, index int) {
	var child *Child
	for i := range q.Children {
		if c := &q.Children[i]; indexOf(q.SequentialJob, c.Name) == index && !c.Deleting {
			child = c
		}
	}
	stepAt(q, next, index, batchv1alpha1.StepSucceeded, child)
	entry := &next.Steps[index]
	entry.CompletionTime, entry.ExitCode = ptr.To(q.Now), ptr.To(int32(0))
	if child != nil {
		entry.CompletionTime = endTime(q, entryOf(next), *child)
	}
	addCompleted(next, index)
}

// stepAt sets what the status says about a step: as its child does, or else as the spec does.
func stepAt(q *sequence, next *batchv1alpha1.SequentialJobStatus, index int, state batchv1alpha1.StepState, child *Child) {
	for len(next.Steps) <= index {
		next.Steps = append(next.Steps, batchv1alpha1.SequentialJobStepStatus{})
	}
	step, was := q.steps[index], next.Steps[index]
	entry := batchv1alpha1.SequentialJobStepStatus{
		Name: step.Name, Kind: step.Kind(), ChildName: helper.ChildName(q.SequentialJob.Name, index), State: state,
		StartTime: was.StartTime, Attempts: max(was.Attempts, 1), ChildUID: was.ChildUID,
	}
	if entry.StartTime == nil {
		entry.StartTime = ptr.To(q.Now)
	}
	if child != nil {
		entry.Kind, entry.ChildUID, entry.Attempts = child.Kind, child.UID, max(was.Attempts, child.Attempt, 1)
	}
	next.Steps[index] = entry
}
