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
)

// destiny is where a Job is heading.
type destiny int

const (
	runOn destiny = iota
	succeed
	failSoon
)

// liveSomeJob lets one thing happen to a Job.
func (w *world) liveSomeJob() {
	if len(w.jobs.objects) == 0 {
		return
	}
	job := oneOf(w.dice, w.jobs.objects...)
	heading := runOn
	if w.dice.percent(w.mood.ending) {
		heading = succeed
		if w.dice.percent(w.mood.failing) {
			heading = failSoon
		}
	}
	// A Job that is on its way out, or about to be suspended, still ends properly at times.
	leaving := (job.DeletionTimestamp != nil || jobIsSuspended(job)) && job.Status.Active > 0 && !ended(job)
	if leaving && heading != runOn && w.dice.percent(30) {
		w.end(job, heading)
		return
	}
	w.live(job, heading)
}

// live takes a Job one step further, as the Job controller and the nodes would. It tells whether anything changed.
func (w *world) live(job *batchv1.Job, heading destiny) bool {
	switch {
	case job.DeletionTimestamp != nil:
		w.note("job %s is gone", job.Name)
		w.jobs.remove(job.Name)
	case ended(job):
		return false
	case hasCondition(job, batchv1.JobFailureTarget):
		w.finishFailure(job)
	case jobIsSuspended(job):
		return w.stopPods(job)
	case job.Status.StartTime == nil || job.Status.Active != podsWanted(job):
		w.startPods(job)
	case ptr.Deref(job.Status.Ready, 0) < job.Status.Active:
		w.note("a pod of job %s is ready", job.Name)
		w.changeJob(job, func(j *batchv1.Job) { j.Status.Ready = ptr.To(ptr.Deref(job.Status.Ready, 0) + 1) })
	case heading == runOn || job.Status.Active == 0:
		return false
	default:
		w.end(job, heading)
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

func (w *world) startPods(job *batchv1.Job) {
	w.note("job %s starts its pods", job.Name)
	w.changeJob(job, func(j *batchv1.Job) {
		if j.Status.StartTime == nil || hasCondition(j, batchv1.JobSuspended) {
			j.Status.StartTime = ptr.To(w.stored())
		}
		if hasCondition(j, batchv1.JobSuspended) {
			w.setCondition(j, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "")
		}
		j.Status.Active, j.Status.Ready = podsWanted(j), ptr.To[int32](0)
	})
}

// stopPods removes the pods of a suspended Job.
func (w *world) stopPods(job *batchv1.Job) bool {
	if hasCondition(job, batchv1.JobSuspended) && job.Status.Active == 0 {
		return false
	}
	w.note("job %s stops its pods", job.Name)
	w.changeJob(job, func(j *batchv1.Job) {
		j.Status.Active, j.Status.Ready = 0, ptr.To[int32](0)
		w.setCondition(j, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "")
	})
	return true
}

// end lets one pod succeed, or the Job fail.
func (w *world) end(job *batchv1.Job, heading destiny) {
	if heading == failSoon {
		w.note("job %s is about to fail", job.Name)
		job = w.changeJob(job, func(j *batchv1.Job) {
			w.setCondition(j, batchv1.JobFailureTarget, corev1.ConditionTrue, oneOf(w.dice, failureReasons...), oneOf(w.dice, failureMessages...))
		})
		w.referee.jobFailed(job, false)
		if w.dice.percent(50) {
			w.finishFailure(job)
		}
		return
	}
	w.note("a pod of job %s succeeds", job.Name)
	w.changeJob(job, func(j *batchv1.Job) {
		j.Status.Succeeded++
		j.Status.Active, j.Status.Ready = max(j.Status.Active-1, 0), ptr.To(max(ptr.Deref(j.Status.Ready, 0)-1, 0))
		if j.Spec.Completions == nil || j.Status.Succeeded >= *j.Spec.Completions {
			w.note("job %s is complete", j.Name)
			j.Status.Active, j.Status.Ready = 0, ptr.To[int32](0)
			w.setCondition(j, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "")
			w.setCondition(j, batchv1.JobComplete, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "")
		}
	})
}

// finishFailure marks a Job as failed after its pods have ended.
func (w *world) finishFailure(job *batchv1.Job) {
	target := conditionOf(job, batchv1.JobFailureTarget)
	w.note("job %s has failed: %s %q", job.Name, target.Reason, target.Message)
	w.changeJob(job, func(j *batchv1.Job) {
		j.Status.Active, j.Status.Ready = 0, ptr.To[int32](0)
		w.setCondition(j, batchv1.JobFailed, corev1.ConditionTrue, target.Reason, target.Message)
	})
	w.referee.jobFailed(job, true)
}

func (w *world) setCondition(job *batchv1.Job, conditionType batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) {
	kept := slices.DeleteFunc(slices.Clone(job.Status.Conditions), func(c batchv1.JobCondition) bool { return c.Type == conditionType })
	job.Status.Conditions = append(kept, batchv1.JobCondition{
		Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: w.stored(),
	})
}

// deleteJob does what a deletion does. A foreground deletion takes its time.
func (w *world) deleteJob(job *batchv1.Job, foreground bool) {
	switch {
	case !foreground:
		w.jobs.remove(job.Name)
	case job.DeletionTimestamp == nil:
		w.changeJob(job, func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(w.stored()) })
	}
}

// collectGarbage takes one step towards a world without the children of sets that are gone, or on their way out.
func (w *world) collectGarbage() { w.garbageCollected() }

// garbageCollected tells whether there was anything to do.
func (w *world) garbageCollected() bool {
	js := w.set()
	for _, job := range w.jobs.objects {
		orphaned := len(job.OwnerReferences) > 0 && (js == nil || job.OwnerReferences[0].UID != js.UID || js.DeletionTimestamp != nil)
		if orphaned && job.DeletionTimestamp == nil {
			w.note("garbage collector deletes job %s", job.Name)
			w.referee.deletedByOther(job)
			w.deleteJob(job, w.dice.percent(50))
			return true
		}
	}
	if js != nil && js.DeletionTimestamp != nil && len(w.ownJobs()) == 0 {
		w.note("the set is gone")
		w.jobSets.remove(setName)
		return true
	}
	for _, service := range w.services.objects {
		if owner := metav1.GetControllerOfNoCopy(service); owner != nil && (js == nil || owner.UID != js.UID) {
			w.services.remove(service.Name)
			return true
		}
	}
	for _, claim := range w.claims.objects {
		if owner := metav1.GetControllerOfNoCopy(claim); owner != nil && (js == nil || owner.UID != js.UID) {
			w.claims.remove(claim.Name)
			return true
		}
	}
	return false
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
