// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
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
func afterFinish(q *sequence) wants {
	w := wants{move: move{kind: conclude, child: q.current}, clock: true}
	for _, m := range q.unwanted() {
		if m.End == "" { // what has ended stays, for its logs
			w.delete = append(w.delete, deletions([]member{m}, noteAfter(q.finished))...)
		}
	}
	expired, after := expiredChildren(q)
	w.delete, w.actsAfter = append(w.delete, expired...), after
	if wait, set := timeToLive(q); set {
		w.deleteSequence, w.actsAfter = wait == 0, hostplan.Sooner(w.actsAfter, wait)
	}
	return w
}

// deleteExpired deletes children of steps that have ended when the time that their own template gives them is over.
func deleteExpired(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	expired, after := expiredChildren(q)
	return wants{delete: expired, actsAfter: after}
}

// expiredChildren returns the children that have outlived their time, and when the next one has; 0 for never.
func expiredChildren(q *sequence) (expired []Deletion, after time.Duration) {
	status, ended := &q.SequentialJob.Status, q.ended
	if q.current != nil && q.current.End != "" {
		ended = append(slices.Clone(ended), member{Child: *q.current, index: q.index})
	}
	for _, m := range ended {
		if m.index < 0 || m.index >= min(len(q.steps), len(status.Steps)) {
			continue
		}
		entry, ttl := &status.Steps[m.index], ttlOf(q.steps[m.index])
		if m.Deleting || ttl == nil || entry.ChildUID != m.UID || entry.CompletionTime == nil {
			continue
		}
		if wait := left(q.Now, *entry.CompletionTime, *ttl); wait > 0 {
			after = hostplan.Sooner(after, wait)
			continue
		}
		expired = append(expired, Deletion{ChildRef: m.ChildRef, Index: m.index})
	}
	return expired, after
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
func timeToLive(q *sequence) (wait time.Duration, set bool) {
	ttl, finished := q.SequentialJob.Spec.TTLSecondsAfterFinished, q.finished
	if ttl == nil {
		return 0, false
	}
	if finished.Reason == batchv1alpha1.ReasonCancelled {
		return left(q.Now, finished.LastTransitionTime, max(*ttl, int32(cancelledTTL.Seconds()))), true
	}
	return left(q.Now, finished.LastTransitionTime, *ttl), true
}

// stopForDeletion stops what runs of a sequence that is being deleted. What has ended is left to the garbage collector.
func stopForDeletion(q *sequence) Plan {
	sj := q.SequentialJob
	if !hasFinalizer(sj) {
		return Plan{}
	}
	var p Plan
	for _, m := range q.unwanted() {
		if m.End == "" {
			p.Delete = append(p.Delete, deletions([]member{m}, noteDeletion)...)
		}
	}
	if q.active > 0 {
		return p
	}
	// The process that created a child may not have lived to record it, and no cache shows one that has lost its label since.
	if ref := unseenAtEnd(q); ref != nil {
		if first := lookAgain(q, ref); first != nil {
			return *first
		}
	}
	// A child that lost its owner, because dependents are to be orphaned, is shown by no cache. It is stopped all the same.
	if q.begun && q.entry.ChildUID != "" && q.current == nil {
		p.Delete = []Deletion{{ChildRef: ChildRef{Kind: q.entry.Kind, Name: q.entry.ChildName, UID: q.entry.ChildUID}, Index: q.index}}
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
