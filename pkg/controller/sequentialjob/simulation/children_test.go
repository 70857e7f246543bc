// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
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
	case c.Deleting:
		e.Note("child %s is gone", c.Name)
		e.removeChild(child)
	case c.End != "":
		return false
	case c.Suspended && c.Busy:
		e.Note("child %s stops", c.Name)
		e.setActive(child, 0)
	case c.Suspended:
		return false
	case !c.Busy:
		e.Note("child %s starts", c.Name)
		e.setActive(child, 1)
	case end == "":
		return false
	default:
		e.Note("child %s: %s", c.Name, end)
		e.end(child, end)
	}
	return true
}

func (e *env) setActive(child metav1.Object, n int32) {
	e.changeChild(child, func(j *batchv1.Job) {
		if j.Status.Active, j.Status.StartTime = n, nil; n > 0 {
			j.Status.StartTime = ptr.To(e.stored())
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
		condition := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: e.stored()}
		if end == plan.Failed {
			condition.Type, condition.Reason = batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded
		}
		j.Status.Conditions = []batchv1.JobCondition{condition}
	}, func(s *jobsetv1alpha2.JobSet) {
		s.Status.ReplicatedJobsStatus = nil
		condition := metav1.Condition{Type: string(jobsetv1alpha2.JobSetCompleted), Status: metav1.ConditionTrue, Reason: "AllJobsCompleted", LastTransitionTime: e.stored()}
		if end == plan.Failed {
			condition.Type, condition.Reason = string(jobsetv1alpha2.JobSetFailed), "FailedJobs"
		}
		s.Status.Conditions = []metav1.Condition{condition}
	})
}

// workload is what Kueue has made for a child.
type workload struct {
	version             int
	active, deactivated bool
}

// kueueActs lets Kueue look at a child.
func (e *env) kueueActs() {
	if own := e.own(); len(own) > 0 {
		e.queue(simulation.OneOf(e.Dice, own...), e.Dice.Percent(20))
	}
}

// queue is what Kueue does with a child: it makes its Workload, admits it, or stops it. It reports whether anything changed.
func (e *env) queue(child metav1.Object, evict bool) bool {
	c := view(child)
	if !c.Queued || c.End != "" || c.Deleting {
		return false
	}
	w := e.workloads[c.UID]
	switch {
	case w == nil:
		e.Note("Kueue makes a Workload for %s", c.Name)
		e.workloads[c.UID] = &workload{version: 1, active: true}
		e.process.worker.Add(name)
	case c.Suspended && w.active && e.generous && !evict:
		e.Note("Kueue admits %s", c.Name)
		e.Seen["admissions"]++
		e.setSuspend(child, false)
	case !c.Suspended && (!w.active || evict):
		e.Note("Kueue stops %s", c.Name)
		e.setSuspend(child, true)
	default:
		return false
	}
	return true
}

func (e *env) setSuspend(child metav1.Object, suspend bool) {
	e.changeChild(child, func(j *batchv1.Job) { j.Spec.Suspend = &suspend }, func(s *jobsetv1alpha2.JobSet) { s.Spec.Suspend = &suspend })
}

// meddle is what somebody may do to children, and what the API may refuse.
func (e *env) meddle() {
	own := e.own()
	switch n := e.Dice.IntN(100); {
	case n < 40 && len(own) > 0:
		child := simulation.OneOf(e.Dice, own...)
		e.Note("somebody deletes child %s", child.GetName())
		e.deleteChild(child)
		e.Seen["children deleted by others"]++
	case n < 55 && len(own) > 0:
		child := simulation.OneOf(e.Dice, own...)
		if view(child).End != "" || !view(child).Busy { // what runs does not vanish without a trace
			e.Note("child %s vanishes", child.GetName())
			e.rules.vanished(child)
			e.removeChild(child)
		}
	case n < 70 && e.sequence() != nil:
		e.occupyName()
	case n < 80:
		e.removeForeign()
	case n < 90:
		e.denial = simulation.OneOf[error](e.Dice,
			apierrors.NewForbidden(batchv1.Resource("jobs"), "x", errors.New("denied by a policy")), apierrors.NewTooManyRequests("later", 1), errQuota)
		e.Note("no child can be created: %v", e.denial)
	default:
		e.denial = nil
	}
}

var errQuota = apierrors.NewForbidden(batchv1.Resource("jobs"), "x", errExceeded{})

type errExceeded struct{}

func (errExceeded) Error() string {
	return "exceeded quota: small, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1"
}

// occupyName makes a Job of somebody else that has a name which the sequence wants.
func (e *env) occupyName() {
	wanted := helper.ChildName(name, e.Dice.IntN(3))
	if _, taken := e.jobs.Get(wanted); taken {
		return
	}
	e.Note("somebody creates a job named %s", wanted)
	e.jobs.Put(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: wanted, Namespace: namespace, UID: types.UID("foreign-" + strconv.Itoa(e.jobs.Versions.Last))},
		Spec:       batchv1.JobSpec{Suspend: ptr.To(true)},
	})
}

// removeForeign removes a Job that is no child. It reports whether there was one.
func (e *env) removeForeign() bool {
	for _, job := range e.jobs.Objects {
		if len(job.OwnerReferences) == 0 {
			e.Note("the job of somebody else named %s is gone", job.Name)
			e.jobs.Remove(job.Name)
			return true
		}
	}
	return false
}

// collectGarbage deletes what has no owner any more, and lets a sequence go that is deleted in the foreground. It reports whether
// there was anything to do.
func (e *env) collectGarbage() bool {
	sj, busy := e.sequence(), false
	for _, child := range e.children() {
		owner := metav1.GetControllerOfNoCopy(child)
		orphan := owner != nil && (sj == nil || sj.UID != owner.UID)
		inForeground := sj != nil && metav1.IsControlledBy(child, sj) && sj.DeletionTimestamp != nil && contains(sj.Finalizers, metav1.FinalizerDeleteDependents)
		if (orphan || inForeground) && child.GetDeletionTimestamp() == nil {
			e.deleteChild(child)
			busy = true
		}
	}
	if sj != nil && sj.DeletionTimestamp != nil && contains(sj.Finalizers, metav1.FinalizerDeleteDependents) && len(e.own()) == 0 {
		e.dropFinalizer(metav1.FinalizerDeleteDependents)
		busy = true
	}
	return busy
}
