// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// missingJobs returns the Jobs whose names are free, of the replicatedJobs that may start (spec/jobset.md §5.7). The
// name of a Job that is being deleted is not free.
func missingJobs(o Observed, kids children, open []bool) []*batchv1.Job {
	policy := o.JobSet.Spec.FailurePolicy
	if policy != nil && policy.RestartStrategy == jobsetv1alpha2.RestartStrategyBlockingRecreate && len(kids.previous) > 0 {
		return nil
	}
	places := positions(o.JobSet)
	var missing []*batchv1.Job
	for i := range o.JobSet.Spec.ReplicatedJobs {
		rj := &o.JobSet.Spec.ReplicatedJobs[i]
		for index := int32(0); open[i] && index < replicas(rj); index++ {
			if !kids.names.Has(jobName(o.JobSet, rj, index)) {
				missing = append(missing, newJob(o, rj, places[i], index))
			}
		}
	}
	return missing
}

// newJob builds a child (spec/jobset.md §5.6).
func newJob(o Observed, rj *jobsetv1alpha2.ReplicatedJob, at position, index int32) *batchv1.Job {
	js := o.JobSet
	keys, place := identity(o, rj, at, index), placement(js, rj)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:            jobName(js, rj, index),
			Namespace:       js.Namespace,
			Labels:          merged(rj.Template.Labels, keys),
			Annotations:     merged(rj.Template.Annotations, place, keys, executionKeys(o), releaseKeys(js)),
			OwnerReferences: []metav1.OwnerReference{ownerReference(js)},
		},
		Spec: *rj.Template.Spec.DeepCopy(),
	}
	job.Spec.Suspend = ptr.To(suspended(js))
	job.Spec.Template.Labels = merged(job.Spec.Template.Labels, keys)
	job.Spec.Template.Annotations = merged(job.Spec.Template.Annotations, place, keys, executionKeys(o))

	pod := &job.Spec.Template.Spec
	if dnsHostnames(js) {
		pod.Subdomain = subdomain(js)
	}
	pod.Volumes = append(pod.Volumes, claimVolumes(js, pod)...)
	addNodeStrategy(job)
	return job
}

// addNodeStrategy ties the pods to the nodes that an administrator has set aside for this very Job, if the Job carries
// both annotations that ask for it.
func addNodeStrategy(job *batchv1.Job) {
	_, exclusive := job.Annotations[jobsetv1alpha2.ExclusiveKey]
	_, byNodeSelector := job.Annotations[jobsetv1alpha2.NodeSelectorStrategyKey]
	if !exclusive || !byNodeSelector {
		return
	}
	pod := &job.Spec.Template.Spec
	pod.NodeSelector = merged(pod.NodeSelector, map[string]string{
		jobsetv1alpha2.NamespacedJobKey: job.Namespace + "_" + job.Name,
	})
	pod.Tolerations = append(pod.Tolerations, corev1.Toleration{
		Key: jobsetv1alpha2.NoScheduleTaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
	})
}
