// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	batchhelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsethelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// ChildOfJob returns what decisions use of a Job.
func ChildOfJob(job *batchv1.Job) Child {
	c := childOf(job, batchv1alpha1.StepKindJob)
	c.Suspended = ptr.Deref(job.Spec.Suspend, false)
	c.Ready = ptr.Deref(job.Status.Ready, 0)+job.Status.Succeeded >= ptr.Deref(job.Spec.Parallelism, 1)
	c.Busy = job.Status.Active+ptr.Deref(job.Status.Terminating, 0) > 0 || jobsethelper.SuspensionPending(job)
	c.LacksPods = jobsethelper.LacksPods(job)
	c.InContainers = job.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
	if done := jobsethelper.TrueJobCondition(job, batchv1.JobComplete); done != nil {
		c.End, c.EndTime = Succeeded, job.Status.CompletionTime
		if c.EndTime == nil {
			c.EndTime = done.LastTransitionTime.DeepCopy()
		}
	}
	if failed := jobsethelper.TrueJobCondition(job, batchv1.JobFailed); failed != nil {
		c.End, c.EndTime, c.Reason, c.Message = Failed, failed.LastTransitionTime.DeepCopy(), failed.Reason, failed.Message
	}
	return c
}

// ChildOfJobSet returns what decisions use of a JobSet.
func ChildOfJobSet(js *jobsetv1alpha2.JobSet) Child {
	c := childOf(js, batchv1alpha1.StepKindJobSet)
	c.Suspended = jobsethelper.Suspended(js)
	var ready, ended int64
	for _, counts := range js.Status.ReplicatedJobsStatus {
		c.Busy = c.Busy || counts.Active > 0
		ready += int64(counts.Ready) + int64(counts.Succeeded)
		ended += int64(counts.Succeeded) + int64(counts.Failed)
	}
	all := jobsethelper.TotalReplicas(js)
	c.Ready, c.JobsEnded = ready >= all, ended >= all
	c.Refused = refusedTo(js)
	// The same holds for a JobSet that its controller has not seen suspended.
	c.Busy = c.Busy || c.Suspended && !meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.JobSetSuspended)
	phase, condition := jobsethelper.Finished(js)
	switch phase {
	case "":
		return c
	case jobsethelper.PhaseCompleted:
		c.End = Succeeded
	default:
		c.End, c.FirstCause = Failed, firstCauseOf(js)
	}
	if condition != nil {
		c.EndTime = condition.LastTransitionTime.DeepCopy() // a pointer would keep the rest in memory
		if c.End == Failed {
			c.Reason, c.Message = condition.Reason, condition.Message
		}
	}
	return c
}

// firstCauseOf returns the first cause of the attempt in which a JobSet failed.
func firstCauseOf(js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.FailureCause {
	if a := jobsethelper.CurrentAttempt(&js.Status); a != nil {
		return a.FirstCause
	}
	return nil
}

func childOf(obj metav1.Object, kind batchv1alpha1.StepKind) Child {
	labels := obj.GetLabels()
	attempt, _ := strconv.ParseInt(labels[batchv1alpha1.StepAttemptKey], 10, 32) // what is no number says nothing
	return Child{
		ChildRef:        ChildRef{Kind: kind, Name: obj.GetName(), UID: obj.GetUID()},
		ResourceVersion: obj.GetResourceVersion(), Attempt: int32(attempt), Created: obj.GetCreationTimestamp(),
		Queued:    labels[batchhelper.QueueKey] != "",
		Admission: obj.GetAnnotations()[batchv1alpha1.AdmissionKey], Deleting: obj.GetDeletionTimestamp() != nil,
	}
}

// refusedTo returns what the API refuses to a JobSet: its Jobs, or else their pods. It returns nil if it refuses neither.
func refusedTo(js *jobsetv1alpha2.JobSet) *hostplan.Refusal {
	for _, conditionType := range []string{jobsetv1alpha2.ChildNameConflict, jobsetv1alpha2.JobCreationFailure,
		jobsetv1alpha2.PodCreationFailure} {
		if c := meta.FindStatusCondition(js.Status.Conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
			return &hostplan.Refusal{Reason: c.Reason, Message: c.Message}
		}
	}
	return nil
}
