// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// This file holds the rules about what decisions do to children, and to the set as a whole.

func suspendedStartsNothing(d decision) string {
	for _, job := range d.plan.CreateJobs {
		if ptr.Deref(job.Spec.Suspend, false) != isSuspended(d.JobSet) {
			return "job " + job.Name + " is created otherwise than the set is"
		}
	}
	for _, patch := range d.plan.PatchJobs {
		if patch.Suspend != nil && *patch.Suspend != isSuspended(d.JobSet) {
			return "job " + patch.Name + " becomes otherwise than the set is"
		}
	}
	return ""
}

func createdRight(d decision) string {
	names := sets.New[string]()
	for _, job := range d.plan.CreateJobs {
		at, ok := placeOf(job)
		switch owner := metav1.GetControllerOfNoCopy(job); {
		case d.job(job.Name) != nil || names.Has(job.Name):
			return "job " + job.Name + " is there already"
		case !ok || meaningOf(d.Observed, job) != active || job.Name != fmt.Sprintf("%s-%s-%d", setName, at.replicatedJob, at.index):
			return "job " + job.Name + " has labels that make no sense"
		case at.restarts != d.before.Restarts || at.jobRestartsKnown != tracksJobs(d.Observed) ||
			at.jobRestartsKnown && at.jobRestarts != jobRestarts(d.before, at.replicatedJob, at.index):
			return "job " + job.Name + " is of another attempt"
		case d.Gates.ExecutionAttemptsTracking && job.Annotations[jobsetv1alpha2.ExecutionAttemptKey] != executionOf(d):
			return "job " + job.Name + " is of another execution"
		case owner == nil || owner.UID != d.JobSet.UID:
			return "job " + job.Name + " is not owned by the set"
		case !mayStart(d.Observed, at.replicatedJob):
			return "job " + job.Name + " is created out of order"
		}
		names.Insert(job.Name)
	}
	policy := d.JobSet.Spec.FailurePolicy
	if len(names) > 0 && policy != nil && policy.RestartStrategy == jobsetv1alpha2.RestartStrategyBlockingRecreate &&
		len(having(d.Observed, previous)) > 0 {
		return "BlockingRecreate has to wait for the Jobs of earlier attempts"
	}
	return ""
}

// executionOf is the execution that Jobs of a set belong to, as they tell it: none before the first.
func executionOf(d decision) string {
	if d.before.ExecutionAttempts == nil {
		return ""
	}
	return fmt.Sprint(*d.before.ExecutionAttempts)
}

func deletedRight(d decision) string {
	for _, ref := range d.plan.DeleteJobs {
		job := d.job(ref.Name)
		if job == nil || job.UID != ref.UID || job.DeletionTimestamp != nil {
			return "job " + ref.Name + " is not there, or on its way out"
		}
		regrouped := jobIsSuspended(job) && outsideGroup(d.JobSet, job)
		if m := meaningOf(d.Observed, job); m != previous && (m != active || !finished(d.before) && !regrouped) {
			return "job " + ref.Name + " is not to be deleted"
		}
	}
	return ""
}

// released is the generation of the set for which a Job says that it may run, once it is patched.
func released(job *batchv1.Job, patch plan.JobPatch) string {
	if value, found := patch.Annotations[jobsetv1alpha2.ReleasedKey]; found {
		return value
	}
	return job.Annotations[jobsetv1alpha2.ReleasedKey]
}

func patchedRight(d decision) string {
	for _, patch := range d.plan.PatchJobs {
		job := d.job(patch.Name)
		switch {
		case job == nil || job.UID != patch.UID || job.ResourceVersion != patch.ResourceVersion:
			return "job " + patch.Name + " is another one"
		case meaningOf(d.Observed, job) != active || job.DeletionTimestamp != nil:
			return "job " + patch.Name + " is not active"
		case patch.Suspend == nil && patch.Size == nil:
			return "the patch of job " + patch.Name + " is empty"
		case patch.Suspend != nil && *patch.Suspend == jobIsSuspended(job):
			return "job " + patch.Name + " is so already"
		case patch.Suspend != nil && !*patch.Suspend && !mayStart(d.Observed, job.Labels[jobsetv1alpha2.ReplicatedJobNameKey]):
			return "job " + patch.Name + " is resumed out of order"
		case patch.Suspend != nil && !*patch.Suspend && job.Annotations[jobsetv1alpha2.ReleasedKey] == fmt.Sprint(d.JobSet.Generation):
			return "job " + patch.Name + " was suspended by somebody else"
		case patch.Suspend != nil && released(job, patch) != map[bool]string{false: fmt.Sprint(d.JobSet.Generation), true: stoppedIn(d.before)}[*patch.Suspend]:
			return "job " + patch.Name + " does not tell who stopped it: it says released at " + released(job, patch)
		case patch.Directives != nil && job.Status.Active > 0:
			return "job " + patch.Name + " gets directives, which the Job API refuses while it has pods"
		case patch.Size != nil && !d.Gates.ElasticJobSet:
			return "job " + patch.Name + " is resized without the feature"
		}
	}
	return ""
}

func timeToLive(d decision) string {
	if !d.plan.DeleteJobSet {
		return ""
	}
	return outlived(d.JobSet, d.Now.Time)
}

// outlived returns why it is not time yet to delete a set, "" if it is.
func outlived(js *jobsetv1alpha2.JobSet, now time.Time) string {
	for _, conditionType := range []string{jobsetv1alpha2.JobSetCompleted, jobsetv1alpha2.JobSetFailed} {
		c := setCondition(&js.Status, conditionType)
		if c == nil || c.Status != metav1.ConditionTrue || js.Spec.TTLSecondsAfterFinished == nil {
			continue
		}
		seconds := *js.Spec.TTLSecondsAfterFinished
		if c.Reason == "Cancelled" && seconds < 300 {
			seconds = 300
		}
		if now.Sub(c.LastTransitionTime.Time) >= time.Duration(seconds)*time.Second {
			return ""
		}
	}
	return "its time is not over"
}
