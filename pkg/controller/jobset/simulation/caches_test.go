// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func hasSetName(job *batchv1.Job) bool { return job.Labels[jobsetv1alpha2.JobSetNameKey] != "" }

// transformed returns what the real cache keeps of a Job.
func (e *env) transformed(job *batchv1.Job) *batchv1.Job {
	kept := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name, Namespace: job.Namespace, UID: job.UID, ResourceVersion: job.ResourceVersion,
			OwnerReferences: job.OwnerReferences, Labels: usedLabels(job), DeletionTimestamp: job.DeletionTimestamp,
			Annotations: usedAnnotations(job),
		},
		Spec: batchv1.JobSpec{Parallelism: job.Spec.Parallelism, Completions: job.Spec.Completions, Suspend: job.Spec.Suspend},
		Status: batchv1.JobStatus{
			Conditions: job.Status.Conditions, StartTime: job.Status.StartTime,
			Active: job.Status.Active, Ready: job.Status.Ready, Succeeded: job.Status.Succeeded,
			Terminating: job.Status.Terminating,
		},
	}
	if jobIsSuspended(job) {
		kept.Spec.Template.Labels, kept.Spec.Template.Annotations = job.Spec.Template.Labels, job.Spec.Template.Annotations
		pod := &job.Spec.Template.Spec
		kept.Spec.Template.Spec = corev1.PodSpec{
			NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations, SchedulingGates: pod.SchedulingGates,
			SchedulingGroup: pod.SchedulingGroup,
		}
		if e.gates.MutablePodResourcesForSuspendedJobSets {
			for _, c := range pod.Containers {
				kept.Spec.Template.Spec.Containers = append(kept.Spec.Template.Spec.Containers, corev1.Container{Name: c.Name, Resources: c.Resources})
			}
		}
	}
	return kept
}

func usedAnnotations(job *batchv1.Job) map[string]string {
	if job.Annotations == nil {
		return nil
	}
	used := map[string]string{}
	if value, found := job.Annotations[jobsetv1alpha2.ReleasedKey]; found {
		used[jobsetv1alpha2.ReleasedKey] = value
	}
	return used
}

func usedLabels(job *batchv1.Job) map[string]string {
	used := make(map[string]string, 5)
	for _, key := range [...]string{
		jobsetv1alpha2.JobSetNameKey, jobsetv1alpha2.ReplicatedJobNameKey, jobsetv1alpha2.JobIndexKey,
		jobsetv1alpha2.RestartsKey, jobsetv1alpha2.JobRestartAttemptKey,
	} {
		if value, found := job.Labels[key]; found {
			used[key] = value
		}
	}
	return used
}
