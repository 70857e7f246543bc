// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// describe returns a snapshot in one line.
func describe(o plan.Observed) string {
	words := []string{fmt.Sprintf("%s@%s, generation %d", o.JobSet.UID, o.JobSet.ResourceVersion, o.JobSet.Generation), describeStatus(&o.JobSet.Status)}
	if isSuspended(o.JobSet) {
		words = append(words, "suspended")
	}
	for _, job := range o.Jobs {
		words = append(words, describeJob(job))
	}
	return strings.Join(words, " ")
}

func describeJob(job *batchv1.Job) string {
	at, _ := placeOf(job)
	words := fmt.Sprintf("%s(%d-%d", job.Name, at.restarts, at.jobRestarts)
	if job.DeletionTimestamp != nil {
		words += " terminating"
	}
	if jobIsSuspended(job) {
		words += " suspended"
	}
	if released := job.Annotations[jobsetv1alpha2.ReleasedKey]; released != "" {
		words += " released@" + released
	}
	for _, c := range job.Status.Conditions {
		if hasCondition(job, c.Type) && c.Type != batchv1.JobSuspended {
			words += " " + string(c.Type)
		}
	}
	return fmt.Sprintf("%s %d/%d)", words, ptr.Deref(job.Status.Ready, 0), job.Status.Active)
}

func describeStatus(status *jobsetv1alpha2.JobSetStatus) string {
	words := []string{fmt.Sprintf("[restarts %d/%d, executions %d", status.Restarts, status.RestartsCountTowardsMax, ptr.Deref(status.ExecutionAttempts, -1))}
	for _, c := range status.Conditions {
		words = append(words, fmt.Sprintf("%s=%s:%s", c.Type, c.Status, c.Reason))
	}
	for _, n := range status.ReplicatedJobsStatus {
		words = append(words, fmt.Sprintf("%s:ready=%d,active=%d,suspended=%d,succeeded=%d,failed=%d,restarts=%v,counted=%v",
			n.Name, n.Ready, n.Active, n.Suspended, n.Succeeded, n.Failed, n.JobRestarts, n.JobRestartsCountTowardsMax))
	}
	return strings.Join(words, " ") + "]"
}

// describePlan returns a plan in one line.
func describePlan(p plan.Plan) string {
	var words []string
	for _, ref := range p.DeleteJobs {
		words = append(words, "delete "+ref.Name)
	}
	for _, patch := range p.PatchJobs {
		words = append(words, "patch "+patch.Name)
	}
	if p.CreateService != nil {
		words = append(words, "create service "+p.CreateService.Name)
	}
	for _, claim := range p.CreateClaims {
		words = append(words, "create claim "+claim.Name)
	}
	for _, job := range p.CreateJobs {
		words = append(words, "create "+describeJob(job))
	}
	if p.Status != nil {
		words = append(words, "status "+describeStatus(p.Status))
	}
	if p.DeleteJobSet {
		words = append(words, "delete the set")
	}
	if p.RequeueAfter > 0 {
		words = append(words, fmt.Sprintf("again after %s", p.RequeueAfter))
	}
	for _, problem := range p.Problems {
		words = append(words, "problem "+problem)
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// describeSpec returns what matters of a set in a few lines.
func describeSpec(e *env) string {
	spec := &e.template.Spec
	lines := []string{fmt.Sprintf("gates %+v, faults %+v", e.gates, e.faults)}
	for i := range spec.ReplicatedJobs {
		rj := &spec.ReplicatedJobs[i]
		lines = append(lines, fmt.Sprintf("replicatedJob %s: replicas %d, parallelism %v, completions %v, dependsOn %v",
			rj.Name, *rj.Replicas, ptr.Deref(rj.Template.Spec.Parallelism, -1), ptr.Deref(rj.Template.Spec.Completions, -1), rj.DependsOn))
	}
	lines = append(lines, fmt.Sprintf("startup %s, success %+v, suspend %t, ttl %d, managedBy %q", spec.StartupPolicy.StartupPolicyOrder,
		*spec.SuccessPolicy, ptr.Deref(spec.Suspend, false), ptr.Deref(spec.TTLSecondsAfterFinished, -1), ptr.Deref(spec.ManagedBy, "")))
	if spec.ActiveDeadlineSeconds != nil {
		lines = append(lines, fmt.Sprintf("active deadline %d", *spec.ActiveDeadlineSeconds))
	}
	if spec.FailurePolicy != nil {
		lines = append(lines, fmt.Sprintf("failure policy %+v", *spec.FailurePolicy))
	}
	return strings.Join(lines, "\n")
}

func jobNameOf(replicatedJob string, index int) string {
	return fmt.Sprintf("%s-%s-%d", setName, replicatedJob, index)
}

func jobRestartsAt(status *jobsetv1alpha2.JobSetStatus, replicatedJob string, index int) int32 {
	return jobRestarts(status, replicatedJob, int32(index))
}
