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
func restoreMatters(o Observed) bool {
	sj := o.SequentialJob
	finished := helper.Finished(sj)
	switch {
	case sj.DeletionTimestamp != nil, helper.ManagedElsewhere(sj), helper.Held(sj):
		return false
	case finished != nil:
		return finished.Type == batchv1alpha1.ConditionFailed && ahead(o) != nil
	}
	return ahead(o) != nil || whyHeld(o) != ""
}

// ahead returns the newest child if it is of a later attempt of its step than the status knows; nil if it is not.
func ahead(o Observed) *member {
	var newest *member
	for i := range o.Children {
		m := &member{Child: o.Children[i], index: indexOf(o.SequentialJob, o.Children[i].Name)}
		if !m.Deleting && m.index >= 0 && (newest == nil || newest.olderThan(m)) {
			newest = m
		}
	}
	if newest == nil || newest.Attempt <= attemptsOf(&o.SequentialJob.Status, newest.index) {
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
func whyHeld(o Observed) string {
	sj := o.SequentialJob
	entry, child := begunStep(sj), presentChild(o)
	switch {
	case helper.Suspended(sj):
		if child != nil && runsAlthoughSuspended(o, child) {
			return messageRunsSuspended(currentIndex(&sj.Status))
		}
	case entry != nil && child == nil && !oldAttemptExists(o, entry):
		return fmt.Sprintf("job %d had started, but does not exist: it may have ended or been deleted since", currentIndex(&sj.Status))
	case len(sj.Status.Steps) > 0 && entry == nil:
		return whyNextHeld(sj, currentIndex(&sj.Status))
	case entry != nil && child != nil && child.End == Succeeded:
		return whyNextHeld(sj, currentIndex(&sj.Status)+1)
	}
	return ""
}

// whyNextHeld returns why a sequence is held before the step that is next; "" if it is not.
func whyNextHeld(sj *batchv1alpha1.SequentialJob, index int) string {
	if mayBeGone(sj, index) {
		return fmt.Sprintf("job %d is next, but may have run since", index)
	}
	return ""
}

// mayBeGone returns whether a step may have run without leaving its child.
func mayBeGone(sj *batchv1alpha1.SequentialJob, index int) bool {
	steps := helper.Steps(&sj.Spec)
	return index < len(steps) && (steps[index].JobSet != nil || ttlOf(steps[index]) != nil)
}

// runsAlthoughSuspended returns whether a child of a suspended sequence runs, so that the sequence was resumed since the backup.
func runsAlthoughSuspended(o Observed, child *Child) bool {
	return child.End == "" && !child.Suspended && !o.Restored.Value().Edited
}

func messageRunsSuspended(index int) string {
	return fmt.Sprintf("the sequence is suspended, but job %d runs: it is left alone", index)
}

// presentChild returns the child of the current attempt of the current step, unless it is being deleted; nil if there is none.
func presentChild(o Observed) *Child {
	for i := range o.Children {
		if c := &o.Children[i]; !c.Deleting && isCurrent(o.SequentialJob, *c) {
			return c
		}
	}
	return nil
}

// oldAttemptExists returns whether a child of an earlier attempt of the step exists, whose name later ones have, too: then none has come
// after it.
func oldAttemptExists(o Observed, entry *batchv1alpha1.SequentialJobStepStatus) bool {
	return slices.ContainsFunc(o.Children, func(c Child) bool { return c.Name == entry.ChildName && c.Attempt < entry.Attempts })
}

// restoration is what a sequence wants after a restore.
type restoration struct {
	// reopens means that the sequence had failed when the backup was made, and was retried since.
	reopens bool
	wants   []wants
	// over means that nothing else may happen.
	over bool
}

// afterRestore takes over the progress that children show, and holds the sequence if they do not show it.
func afterRestore(o Observed) restoration {
	newest, finished, wasHeld := ahead(o), helper.Finished(o.SequentialJob), helper.Held(o.SequentialJob)
	_, restored := o.Restored.Get()
	if !restored && !wasHeld || finished != nil && (newest == nil || finished.Type == batchv1alpha1.ConditionComplete) {
		return restoration{}
	}
	reopens := finished != nil
	switch {
	case newest != nil:
		return restoration{reopens: reopens, wants: followNewest(o, *newest, wasHeld), over: true}
	case wasHeld && !runsAgain(o):
		return restoration{over: true}
	case wasHeld:
		return restoration{wants: []wants{{conditions: []condition{notHeld("the current job runs")}}}}
	}
	// A sequence on which a user has acted since the restore is not held.
	if why := whyHeld(o); why != "" && !o.Restored.Value().Acted {
		return restoration{wants: []wants{hold(o, why)}, over: true}
	}
	return restoration{}
}

// followNewest takes over the step of the newest child, which ends a hold if it runs. A child of a step that the sequence has
// behind it is left alone.
func followNewest(o Observed, newest member, wasHeld bool) []wants {
	if newest.index < currentIndex(&o.SequentialJob.Status) || newest.index >= helper.StepCount(&o.SequentialJob.Spec) {
		return []wants{hold(o, fmt.Sprintf("child %s is of an attempt that the sequence does not know: it is left alone", newest.Name))}
	}
	takenOver := wants{move: move{kind: takeOver, index: newest.index, child: &newest.Child}}
	switch suspended := helper.Suspended(o.SequentialJob); {
	case wasHeld && !suspended:
		return []wants{takenOver, {conditions: []condition{notHeld("the current job runs")}}}
	case suspended && runsAlthoughSuspended(o, &newest.Child):
		return []wants{takenOver, hold(o, messageRunsSuspended(newest.index))}
	}
	return []wants{takenOver}
}

// runsAgain returns whether the child of the current step of a held sequence runs.
func runsAgain(o Observed) bool {
	c := presentChild(o)
	return c != nil && c.End == "" && !helper.Suspended(o.SequentialJob)
}

// hold begins the hold. The clock of the deadline stands still meanwhile.
func hold(o Observed, why string) wants {
	sj := o.SequentialJob
	message := fmt.Sprintf("the store was restored from a backup in which %s; delete the sequence, or let it continue with `kubectl jobset "+
		"resume sqj/%s -n %s`",
		why, sj.Name, sj.Namespace)
	return wants{
		conditions: []condition{{
			Type: batchv1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonRestoredFromBackup, Message: message,
			event: warning(batchv1alpha1.ReasonRestoredFromBackup, message),
		}, progressing(batchv1alpha1.ReasonRestoredFromBackup, "the sequence is held")},
		move: move{kind: standStill},
	}
}

// reopen takes back that the sequence had failed when the backup was made: it was retried since.
func (s *status) reopen() {
	const message = "the store was restored from a backup, and the sequence was retried since"
	s.put(notFailed(batchv1alpha1.ReasonRestoredFromBackup, message))
	s.next.Progress.FailedIndex, s.next.Progress.FailureReason, s.next.CompletionTime = nil, "", nil
	s.put(available())
}

// takeOver makes the step of a child the current one.
func (s *status) takeOver(newest member) {
	for index := s.index(); index < newest.index; index++ {
		s.takeOverSucceeded(index)
	}
	for index := newest.index + 1; index < len(s.next.Steps); index++ { // these ran before a retry
		s.next.Steps[index].State = batchv1alpha1.StepPending
	}
	s.stepAt(newest.index, batchv1alpha1.StepStarting, &newest.Child)
	s.next.Progress.CurrentIndex = ptr.To(int32(newest.index))
	if s.next.StartTime == nil {
		s.next.StartTime = s.now()
	}
	s.put(progressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d runs", newest.index)))
	s.followClock()
	s.events = append(s.events, normal(reasonProgressTakenOver, fmt.Sprintf(
		"The store was restored from a backup. Attempt %d of job %d was taken over from %s %s", newest.Attempt, newest.index, newest.Kind,
		newest.Name)))
}

// takeOverSucceeded records that a step has succeeded, because a later one has begun.
func (s *status) takeOverSucceeded(index int) {
	var child *Child
	for i := range s.o.Children {
		if c := &s.o.Children[i]; indexOf(s.o.SequentialJob, c.Name) == index && !c.Deleting {
			child = c
		}
	}
	s.stepAt(index, batchv1alpha1.StepSucceeded, child)
	entry := &s.next.Steps[index]
	entry.CompletionTime, entry.ExitCode = s.now(), ptr.To(int32(0))
	if child != nil {
		entry.CompletionTime = s.endTime(*child)
	}
	s.addCompleted(index)
}

// stepAt sets what the status says about a step: as its child does, or else as the spec does.
func (s *status) stepAt(index int, state batchv1alpha1.StepState, child *Child) {
	for len(s.next.Steps) <= index {
		s.next.Steps = append(s.next.Steps, batchv1alpha1.SequentialJobStepStatus{})
	}
	step, was := s.steps[index], s.next.Steps[index]
	entry := batchv1alpha1.SequentialJobStepStatus{
		Name: step.Name, Kind: step.Kind(), ChildName: helper.ChildName(s.o.SequentialJob.Name, index), State: state,
		StartTime: was.StartTime, Attempts: max(was.Attempts, 1), ChildUID: was.ChildUID,
	}
	if entry.StartTime == nil {
		entry.StartTime = s.now()
	}
	if child != nil {
		entry.Kind, entry.ChildUID, entry.Attempts = child.Kind, child.UID, max(was.Attempts, child.Attempt, 1)
	}
	s.next.Steps[index] = entry
}
