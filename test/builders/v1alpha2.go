// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builders makes objects for tests: small, valid, and changed by functions that name what matters to the case.
package builders

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Namespace is the namespace of built objects.
const Namespace = "default"

// JobSet returns a versioned JobSet and applies the changes in order. It has no replicatedJobs of its own.
func JobSet(name string, change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	js := &jobsetv1alpha2.JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
	}
	for _, f := range change {
		f(js)
	}
	return js
}

// WithJobs adds a replicatedJob of so many Indexed Jobs, each with so many pods, and applies the changes to it.
func WithJobs(name string, replicas, pods int32, change ...func(*jobsetv1alpha2.ReplicatedJob)) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		rj := jobsetv1alpha2.ReplicatedJob{
			Name:      name,
			GroupName: ptr.To(jobsetv1alpha2.DefaultGroupName),
			Replicas:  ptr.To(replicas),
			Template:  jobTemplate(pods),
		}
		for _, f := range change {
			f(&rj)
		}
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, rj)
	}
}

// jobTemplate is the template of an Indexed Job of so many pods.
func jobTemplate(pods int32) batchv1.JobTemplateSpec {
	return batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
		Parallelism:    ptr.To(pods),
		Completions:    ptr.To(pods),
		CompletionMode: ptr.To(batchv1.IndexedCompletion),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyOnFailure,
			Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
		}},
	}}
}
