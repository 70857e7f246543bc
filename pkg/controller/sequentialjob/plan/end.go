// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// cancelledTTL is how long a cancelled sequence stays at least. Whoever may cancel one need not have the right to delete it,
// and a sequence that was cancelled by mistake can be retried.
const cancelledTTL = 5 * time.Minute

// afterFinish stops what still runs of a finished sequence, completes its status, and deletes children and the sequence when
// their time is over.
func afterFinish(o Observed, owned family) wants {
	finished := helper.Finished(o.SequentialJob)
	stopped := owned.inTheWay
	if owned.current != nil {
		stopped = append(stopped, member{Child: *owned.current, index: currentIndex(&o.SequentialJob.Status)})
	}
	w := wants{move: move{kind: conclude, child: owned.current}}
	for _, m := range stopped {
		if m.End == "" { // what has ended stays, for its logs
			w.delete = append(w.delete, deletions([]member{m}, noteAfter(finished))...)
		}
	}
	expired := deleteExpired(o, owned)
	w.delete, w.actsAfter = append(w.delete, expired.delete...), expired.actsAfter
	if wait, set := timeToLive(o, finished); set {
		w.deleteSequence, w.actsAfter = wait == 0, hostplan.Sooner(w.actsAfter, wait)
	}
	return w
}

// deleteExpired deletes children of steps that have ended when the time that their own template gives them is over.
func deleteExpired(o Observed, owned family) (w wants) {
	steps, status := helper.Steps(&o.SequentialJob.Spec), &o.SequentialJob.Status
	ended := owned.ended
	if owned.current != nil && owned.current.End != "" {
		ended = append(ended, member{Child: *owned.current, index: currentIndex(status)})
	}
	for _, m := range ended {
		if m.index < 0 || m.index >= min(len(steps), len(status.Steps)) {
			continue
		}
		entry, ttl := &status.Steps[m.index], ttlOf(steps[m.index])
		if m.Deleting || ttl == nil || entry.ChildUID != m.UID || entry.CompletionTime == nil {
			continue
		}
		if wait := left(o, *entry.CompletionTime, *ttl); wait > 0 {
			w.actsAfter = hostplan.Sooner(w.actsAfter, wait)
			continue
		}
		w.delete = append(w.delete, Deletion{ChildRef: m.ChildRef, Index: m.index})
	}
	return w
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

// timeToLive returns the time after which a finished sequence is deleted, and whether it is.
func timeToLive(o Observed, finished *metav1.Condition) (wait time.Duration, set bool) {
	ttl := o.SequentialJob.Spec.TTLSecondsAfterFinished
	if ttl == nil {
		return 0, false
	}
	if finished.Reason == batchv1alpha1.ReasonCancelled {
		return left(o, finished.LastTransitionTime, max(*ttl, int32(cancelledTTL.Seconds()))), true
	}
	return left(o, finished.LastTransitionTime, *ttl), true
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

// reconciliationFails returns whether the status says that passes fail.
func reconciliationFails(status *batchv1alpha1.SequentialJobStatus) bool {
	return isTrue(status, batchv1alpha1.ConditionFailed, batchv1alpha1.ReasonReconciliationError)
}
