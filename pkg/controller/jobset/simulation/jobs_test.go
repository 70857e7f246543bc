// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// destiny is where a Job is heading.
type destiny int

const (
	runOn destiny = iota
	succeed
	failSoon
)

// liveSomeJob lets one thing happen to a Job.
func (e *env) liveSomeJob() {
	if len(e.jobs.Objects) == 0 {
		return
	}
	job := simulation.OneOf(e.Dice, e.jobs.Objects...)
	heading := runOn
	if e.Dice.Percent(e.faults.ending) {
		heading = succeed
		if e.Dice.Percent(e.faults.failing) {
			heading = failSoon
		}
	}
	// A Job that is on its way out, or about to be suspended, still ends properly at times.
	leaving := (job.DeletionTimestamp != nil || jobIsSuspended(job)) && job.Status.Active > 0 && !ended(job)
	if leaving && heading != runOn && e.Dice.Percent(30) {
		e.end(job, heading)
		return
	}
	e.live(job, heading)
}

// live takes a Job one step further, as the Job controller and the nodes would. It reports whether anything changed.
func (e *env) live(job *batchv1.Job, heading destiny) bool {
	switch {
	case e.stopsSlowly(job):
		return false
	case job.DeletionTimestamp != nil:
		e.Note("job %s is gone", job.Name)
		e.jobs.Remove(job.Name)
	case ended(job):
		return false
	case hasCondition(job, batchv1.JobFailureTarget):
		e.finishFailure(job)
	case jobIsSuspended(job):
		return e.stopPods(job)
	case job.Status.StartTime == nil || job.Status.Active != podsWanted(job):
		e.startPods(job)
	case ptr.Deref(job.Status.Ready, 0) < job.Status.Active:
		e.Note("a pod of job %s is ready", job.Name)
		e.changeJob(job, func(j *batchv1.Job) { j.Status.Ready = ptr.To(ptr.Deref(job.Status.Ready, 0) + 1) })
	case heading == runOn || job.Status.Active == 0:
		return false
	default:
		e.end(job, heading)
	}
	return true
}

func podsWanted(job *batchv1.Job) int32 {
	wanted := *job.Spec.Parallelism
	if job.Spec.Completions != nil {
		wanted = min(wanted, *job.Spec.Completions-job.Status.Succeeded)
	}
	return max(wanted, 0)
}

func (e *env) startPods(job *batchv1.Job) {
	e.Note("job %s starts its pods", job.Name)
	e.changeJob(job, func(j *batchv1.Job) {
		if j.Status.StartTime == nil || hasCondition(j, batchv1.JobSuspended) {
			j.Status.StartTime = ptr.To(e.Stored())
		}
		if hasCondition(j, batchv1.JobSuspended) {
			e.setCondition(j, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "")
		}
		j.Status.Active, j.Status.Ready, j.Status.Terminating = podsWanted(j), ptr.To[int32](0), nil
	})
}

// stopPods removes the pods of a suspended Job. They stop some time after they are deleted.
func (e *env) stopPods(job *batchv1.Job) bool {
	if hasCondition(job, batchv1.JobSuspended) && !hasPods(job) {
		return false
	}
	stop := job.Status.Active
	if stop == 0 || e.Dice.Percent(30) {
		stop = 0
		e.Note("the pods of job %s have stopped", job.Name)
	} else {
		e.Note("job %s deletes its pods", job.Name)
	}
	e.changeJob(job, func(j *batchv1.Job) {
		j.Status.Active, j.Status.Ready, j.Status.Terminating = 0, ptr.To[int32](0), &stop
		e.setCondition(j, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "")
	})
	return true
}

// end lets one pod succeed, or the Job fail.
func (e *env) end(job *batchv1.Job, heading destiny) {
	if heading == failSoon {
		e.Note("job %s is about to fail", job.Name)
		job = e.changeJob(job, func(j *batchv1.Job) {
			e.setCondition(j, batchv1.JobFailureTarget, corev1.ConditionTrue, simulation.OneOf(e.Dice, failureReasons...), simulation.OneOf(e.Dice, failureMessages...))
		})
		e.invariants.jobFailed(job, false)
		if e.Dice.Percent(50) && !e.stopsSlowly(job) {
			e.finishFailure(job)
		}
		return
	}
	e.Note("a pod of job %s succeeds", job.Name)
	e.changeJob(job, func(j *batchv1.Job) {
		j.Status.Succeeded++
		j.Status.Active, j.Status.Ready = max(j.Status.Active-1, 0), ptr.To(max(ptr.Deref(j.Status.Ready, 0)-1, 0))
		if j.Spec.Completions == nil || j.Status.Succeeded >= *j.Spec.Completions {
			e.Note("job %s is complete", j.Name)
			j.Status.Active, j.Status.Ready, j.Status.Terminating = 0, ptr.To[int32](0), nil
			e.setCondition(j, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "")
			e.setCondition(j, batchv1.JobComplete, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "")
		}
	})
}

// finishFailure marks a Job as failed after its pods have ended.
func (e *env) finishFailure(job *batchv1.Job) {
	target := conditionOf(job, batchv1.JobFailureTarget)
	e.Note("job %s has failed: %s %q", job.Name, target.Reason, target.Message)
	e.changeJob(job, func(j *batchv1.Job) {
		j.Status.Active, j.Status.Ready, j.Status.Terminating = 0, ptr.To[int32](0), nil
		e.setCondition(j, batchv1.JobFailed, corev1.ConditionTrue, target.Reason, target.Message)
	})
	e.invariants.jobFailed(job, true)
}

func (e *env) setCondition(job *batchv1.Job, conditionType batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) {
	kept := slices.DeleteFunc(slices.Clone(job.Status.Conditions), func(c batchv1.JobCondition) bool { return c.Type == conditionType })
	job.Status.Conditions = append(kept, batchv1.JobCondition{
		Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: e.Stored(),
	})
}

// deleteJob does what a deletion does. A foreground deletion takes its time.
func (e *env) deleteJob(job *batchv1.Job, foreground bool) {
	switch {
	case !foreground:
		e.jobs.Remove(job.Name)
	case job.DeletionTimestamp == nil:
		e.changeJob(job, func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(e.Stored()) })
	}
}

// collectGarbage takes one step towards a cluster without the children of sets that are gone, or on their way out. It
// reports whether there was anything to do.
func (e *env) collectGarbage() bool {
	js := e.set()
	for _, job := range e.jobs.Objects {
		orphaned := len(job.OwnerReferences) > 0 && (js == nil || job.OwnerReferences[0].UID != js.UID || js.DeletionTimestamp != nil)
		if orphaned && job.DeletionTimestamp == nil {
			e.Note("garbage collector deletes job %s", job.Name)
			e.invariants.deletedByOther(job)
			e.deleteJob(job, e.Dice.Percent(50))
			return true
		}
	}
	if js != nil && js.DeletionTimestamp != nil && len(e.ownJobs()) == 0 {
		e.Note("the set is gone")
		e.jobSets.Remove(setName)
		return true
	}
	for _, service := range e.services.Objects {
		if owner := metav1.GetControllerOfNoCopy(service); owner != nil && (js == nil || owner.UID != js.UID) {
			e.services.Remove(service.Name)
			return true
		}
	}
	for _, claim := range e.claims.Objects {
		if owner := metav1.GetControllerOfNoCopy(claim); owner != nil && (js == nil || owner.UID != js.UID) {
			e.claims.Remove(claim.Name)
			return true
		}
	}
	return e.gangs != nil && e.gangs.collect()
}

func conditionOf(job *batchv1.Job, conditionType batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func hasCondition(job *batchv1.Job, conditionType batchv1.JobConditionType) bool {
	return conditionOf(job, conditionType) != nil
}

func ended(job *batchv1.Job) bool {
	return hasCondition(job, batchv1.JobComplete) || hasCondition(job, batchv1.JobFailed)
}

func jobIsSuspended(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) }

func isSuspended(js *jobsetv1alpha2.JobSet) bool { return ptr.Deref(js.Spec.Suspend, false) }
