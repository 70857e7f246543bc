// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// liveSomeChild takes one child a step further.
func (e *env) liveSomeChild() {
	all := e.children()
	if len(all) == 0 {
		return
	}
	end := plan.Succeeded
	if e.Dice.Percent(e.faults.failing) {
		end = plan.Failed
	}
	e.live(simulation.OneOf(e.Dice, all...), end)
}

// live takes a child a step further: it is gone, gets pods, loses them, or ends. It reports whether anything changed.
func (e *env) live(child metav1.Object, end plan.End) bool {
	c := view(child)
	switch {
	case e.stopsSlowly(child):
		return false
	case c.Deleting:
		e.Note("child %s is gone", c.Name)
		e.endPods(c.UID) // deletion in the foreground waits for them
		e.left = slices.DeleteFunc(e.left, func(j workloadOf) bool { return j.child == c.UID })
		e.removeChild(child)
	case c.End != "":
		return false
	case c.Suspended && c.Busy:
		e.Note("child %s stops", c.Name)
		e.setActive(child, 0)
		e.endPods(c.UID)
	case c.Suspended:
		return false
	case !c.Busy:
		e.Note("child %s starts", c.Name)
		e.setActive(child, 1)
		e.startPod(newWorkloadOf(child, ""))
	case end == "":
		return false
	default:
		e.Note("child %s: %s", c.Name, end)
		e.end(child, end)
		if c.Kind == batchv1alpha1.StepKindJobSet && e.Dice.Percent(50) {
			e.outlive(child)
		} else {
			e.endPods(c.UID)
		}
	}
	return true
}

func (e *env) setActive(child metav1.Object, n int32) {
	e.changeChild(child, func(j *batchv1.Job) {
		if j.Status.Active, j.Status.StartTime, j.Status.Terminating = n, nil, nil; n > 0 {
			j.Status.StartTime = ptr.To(e.storedBy(j))
		}
	}, func(s *jobsetv1alpha2.JobSet) {
		status := metav1.ConditionFalse
		if n == 0 {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: jobsetv1alpha2.JobSetSuspended, Status: status})
		s.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Active: n}}
	})
}

func (e *env) end(child metav1.Object, end plan.End) {
	e.Seen["children: "+string(end)]++
	e.changeChild(child, func(j *batchv1.Job) {
		j.Status.Active = 0
		condition := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: e.storedBy(j)}
		if end == plan.Failed {
			condition.Type, condition.Reason = batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded
		}
		j.Status.Conditions = []batchv1.JobCondition{condition}
	}, func(s *jobsetv1alpha2.JobSet) {
		s.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Succeeded: 1}} // of two
		condition := metav1.Condition{Type: string(jobsetv1alpha2.JobSetCompleted), Status: metav1.ConditionTrue, Reason: "AllJobsCompleted", LastTransitionTime: e.stored()}
		if end == plan.Failed {
			condition.Type, condition.Reason = string(jobsetv1alpha2.JobSetFailed), "FailedJobs"
		}
		s.Status.Conditions = []metav1.Condition{condition}
	})
}

// collectGarbage deletes what has no owner any more, and lets a sequence go that is deleted in the foreground, or whose
// children are to be orphaned. It reports whether there was anything to do.
func (e *env) collectGarbage() bool {
	sj, busy := e.sequence(), false
	deleting := func(finalizer string) bool {
		return sj != nil && sj.DeletionTimestamp != nil && contains(sj.Finalizers, finalizer)
	}
	for _, child := range e.children() {
		owner := metav1.GetControllerOfNoCopy(child)
		orphan := owner != nil && (sj == nil || sj.UID != owner.UID)
		own := sj != nil && metav1.IsControlledBy(child, sj)
		switch {
		case own && deleting(metav1.FinalizerOrphanDependents):
			e.Note("child %s is orphaned", child.GetName())
			e.changeChild(child, func(j *batchv1.Job) { j.OwnerReferences = nil }, func(s *jobsetv1alpha2.JobSet) { s.OwnerReferences = nil })
			busy = true
		case (orphan || own && deleting(metav1.FinalizerDeleteDependents)) && child.GetDeletionTimestamp() == nil:
			e.deleteChild(child)
			busy = true
		}
	}
	for _, finalizer := range []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents} {
		if deleting(finalizer) && len(e.own()) == 0 {
			e.dropFinalizer(finalizer)
			sj, busy = e.sequence(), true
		}
	}
	return busy
}
