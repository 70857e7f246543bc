// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/podgroups"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// PodGrouping is what the scheduler is asked of the groups of one entry of spec.scheduling.
type PodGrouping struct {
	// Policy is never nil, and has one field.
	Policy jobsetv1alpha2.SchedulingPolicy
	// Constraints and Disruption are nil if they are left to the scheduler.
	Constraints *jobsetv1alpha2.SchedulingConstraints
	Disruption  *jobsetv1alpha2.DisruptionMode
	// Claims are devices that the pods of a group share.
	Claims []jobsetv1alpha2.SchedulingResourceClaim
}

// PodGroups returns what the groups of a set with spec.scheduling result from, and what is asked of those of each entry.
func PodGroups(js *jobsetv1alpha2.JobSet) (podgroups.Set, []PodGrouping) {
	spec := &js.Spec
	out := podgroups.Set{Namespace: js.Namespace, Name: js.Name, Jobs: groupedJobs(spec)}
	asked := make([]PodGrouping, 0, len(spec.Scheduling.ReplicatedJobs))
	for i := range spec.Scheduling.ReplicatedJobs {
		e := &spec.Scheduling.ReplicatedJobs[i]
		g := PodGrouping{policyOf(e.SchedulingPolicy), e.SchedulingConstraints, e.DisruptionMode, e.ResourceClaims}
		if e.Job != nil {
			g = PodGrouping{policyOf(e.Job.SchedulingPolicy), e.Job.SchedulingConstraints, e.Job.DisruptionMode, e.Job.ResourceClaims}
		}
		asked = append(asked, g)
		out.Entries = append(out.Entries, podgroups.Entry{Targets: e.TargetReplicatedJobs, PerJob: e.Job != nil, Gang: g.Policy.Gang != nil})
	}
	if len(out.Entries) > 0 {
		return out, asked
	}
	whole := PodGrouping{Policy: policyOf(spec.Scheduling.SchedulingPolicy), Constraints: spec.Scheduling.SchedulingConstraints,
		Disruption: spec.Scheduling.DisruptionMode}
	out.Group(whole.Policy.Gang != nil)
	for range out.Entries {
		asked = append(asked, whole)
	}
	return out, asked
}

func groupedJobs(spec *jobsetv1alpha2.JobSetSpec) []podgroups.Job {
	inOrder := spec.StartupPolicy != nil && spec.StartupPolicy.StartupPolicyOrder == jobsetv1alpha2.InOrder
	out := make([]podgroups.Job, len(spec.ReplicatedJobs))
	for i := range spec.ReplicatedJobs {
		rj := &spec.ReplicatedJobs[i]
		out[i] = podgroups.Job{Name: rj.Name, Replicas: max(Replicas(rj), 0), Pods: podgroups.PodsAtOnce(&rj.Template.Spec)}
		for j := range rj.DependsOn {
			out[i].After = append(out[i].After, rj.DependsOn[j].Name)
		}
		if inOrder && i > 0 {
			out[i].After = append(out[i].After, spec.ReplicatedJobs[i-1].Name)
		}
	}
	return out
}

// policyOf returns the policy; a gang of all pods if there is none.
func policyOf(policy *jobsetv1alpha2.SchedulingPolicy) jobsetv1alpha2.SchedulingPolicy {
	switch {
	case policy == nil:
		return jobsetv1alpha2.SchedulingPolicy{Gang: &jobsetv1alpha2.GangSchedulingPolicy{}}
	case policy.Basic != nil:
		return jobsetv1alpha2.SchedulingPolicy{Basic: policy.Basic}
	}
	return jobsetv1alpha2.SchedulingPolicy{Gang: ptr.To(ptr.Deref(policy.Gang, jobsetv1alpha2.GangSchedulingPolicy{}))}
}

// LacksPods returns whether the Job controller should make more pods for a Job than there are.
func LacksPods(job *batchv1.Job) bool {
	if job.DeletionTimestamp != nil || ptr.Deref(job.Spec.Suspend, false) {
		return false
	}
	for _, c := range job.Status.Conditions {
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet:
			if c.Status == corev1.ConditionTrue {
				return false
			}
		}
	}
	wanted := ptr.Deref(job.Spec.Parallelism, 1)
	switch {
	case job.Spec.Completions != nil:
		wanted = min(wanted, *job.Spec.Completions-job.Status.Succeeded)
	case job.Status.Succeeded > 0:
		return false // the others finish, and none are added
	}
	return job.Status.Active < wanted
}
