// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// cancelledTTL is how long a cancelled sequence stays at least. Whoever may cancel one need not have the right to delete it,
// and a sequence that was cancelled by mistake can be retried.
const cancelledTTL = 5 * time.Minute

// afterFinish stops what still runs of a finished sequence, completes its status, and deletes children and the sequence when
// their time is over.
func afterFinish(o Observed, owned family, st *statusBuilder) Plan {
	finished := helper.Finished(o.SequentialJob)
	st.next.ObservedGeneration = o.SequentialJob.Generation
	if finished.Type == batchv1alpha1.ConditionFailed {
		st.completeFailure(owned, finished)
	}
	st.end()
	var p Plan
	stopped := owned.inTheWay
	if owned.current != nil && owned.current.End == "" {
		stopped = append(stopped, member{Child: *owned.current, index: st.index()})
	}
	for _, m := range stopped {
		if m.End == "" { // what has ended stays, for its logs
			p.Delete = append(p.Delete, deletions([]member{m}, noteAfter(finished))...)
		}
	}
	p.applyTTL(o, owned)
	p.applyOwnTTL(o, finished)
	return p
}

// completeFailure records what the cancellation of the sequence by a user leaves to the controller.
func (b *statusBuilder) completeFailure(owned family, finished *metav1.Condition) {
	entry := begun(b.next)
	switch {
	case entry == nil:
	case owned.current != nil && owned.current.End == Succeeded:
		entry.ChildUID, entry.State, entry.CompletionTime, entry.ExitCode = owned.current.UID, batchv1alpha1.StepSucceeded,
			b.endTime(*owned.current), ptr.To(int32(0))
		b.next.Progress.CompletedIndices = append(b.next.Progress.CompletedIndices, int32(b.index()))
	default:
		b.stopStep(finished.Reason)
		b.next.Progress.FailedIndex, b.next.Progress.FailureReason = ptr.To(int32(b.index())), finished.Reason
	}
	if b.next.Progress.CompletedIndices == nil {
		b.next.Progress.CompletedIndices = []int32{}
	}
	b.noteFailure(finished.Reason, finished.Message)
}

// applyTTL deletes children of steps that have ended when the time that their own template gives them is over.
func (p *Plan) applyTTL(o Observed, owned family) {
	steps := helper.Steps(&o.SequentialJob.Spec)
	ended := owned.ended
	if owned.current != nil && owned.current.End != "" {
		ended = append(ended, member{Child: *owned.current, index: currentIndex(&o.SequentialJob.Status)})
	}
	for _, m := range ended {
		if m.index < 0 || m.index >= min(len(steps), len(o.SequentialJob.Status.Steps)) {
			continue
		}
		entry, ttl := &o.SequentialJob.Status.Steps[m.index], ttlOf(steps[m.index])
		if m.Deleting || ttl == nil || entry.ChildUID != m.UID || entry.CompletionTime == nil {
			continue
		}
		if wait := left(o, *entry.CompletionTime, *ttl); wait > 0 {
			p.RequeueAfter = sooner(p.RequeueAfter, wait)
			continue
		}
		p.Delete = append(p.Delete, Deletion{ChildRef: m.ChildRef, Index: m.index})
	}
}

// ttlOf returns how long the child of a step stays after its end; nil for as long as the sequence.
func ttlOf(step helper.Step) *int32 {
	switch {
	case step.Job != nil:
		return step.Job.Spec.TTLSecondsAfterFinished
	case step.JobSet != nil:
		return step.JobSet.Spec.TTLSecondsAfterFinished
	}
	return nil
}

// applyOwnTTL deletes the sequence when its time is over.
func (p *Plan) applyOwnTTL(o Observed, finished *metav1.Condition) {
	ttl := o.SequentialJob.Spec.TTLSecondsAfterFinished
	if ttl == nil {
		return
	}
	wait := left(o, finished.LastTransitionTime, *ttl)
	if finished.Reason == batchv1alpha1.ReasonCancelled {
		wait = left(o, finished.LastTransitionTime, max(*ttl, int32(cancelledTTL.Seconds())))
	}
	p.DeleteSequentialJob = wait == 0
	p.RequeueAfter = sooner(p.RequeueAfter, wait)
}

// stopForDeletion stops what runs of a sequence that is being deleted. What has ended is left to the garbage collector.
func stopForDeletion(o Observed) Plan {
	sj := o.SequentialJob
	if !hasFinalizer(sj) {
		return Plan{}
	}
	owned := familyOf(o)
	running := owned.inTheWay
	if owned.current != nil {
		running = append(running, member{Child: *owned.current, index: currentIndex(&sj.Status)})
	}
	var p Plan
	for _, m := range running {
		if m.End == "" {
			p.Delete = append(p.Delete, deletions([]member{m}, noteDeletion)...)
		}
	}
	if owned.active > 0 {
		return p
	}
	// A child that lost its owner, because dependents are to be orphaned, is shown by no cache. It is stopped all the same.
	if entry := begunStep(sj); entry != nil && entry.ChildUID != "" && owned.current == nil {
		index := currentIndex(&sj.Status)
		p.Delete = []Deletion{{ChildRef: ChildRef{Kind: entry.Kind, Name: entry.ChildName, UID: entry.ChildUID}, Index: index}}
	}
	p.RemoveFinalizer = true
	return p
}

func noteDeletion(m member) string {
	return fmt.Sprintf("Stopped job %d, %s %s, because the SequentialJob is being deleted", m.index, m.Kind, m.Name)
}

func noteAfter(finished *metav1.Condition) func(member) string {
	return func(m member) string {
		if finished.Reason == batchv1alpha1.ReasonCancelled {
			return fmt.Sprintf("Stopped job %d, %s %s, because the SequentialJob was cancelled", m.index, m.Kind, m.Name)
		}
		return fmt.Sprintf("Stopped job %d, %s %s, because the SequentialJob has ended", m.index, m.Kind, m.Name)
	}
}

func noteOldAttempt(m member) string {
	if m.End != "" {
		return ""
	}
	return fmt.Sprintf("Stopped job %d, %s %s, because another attempt follows", m.index, m.Kind, m.Name)
}

// reconciliationFails returns the condition that says that passes fail; nil if it is not True.
func reconciliationFails(status *batchv1alpha1.SequentialJobStatus) *metav1.Condition {
	c := meta.FindStatusCondition(status.Conditions, batchv1alpha1.ConditionFailed)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != batchv1alpha1.ReasonReconciliationError {
		return nil
	}
	return c
}
