// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// NewChild returns the Job or the JobSet of an attempt of a step; one of them is nil. It shares nothing with the sequence.
func NewChild(sj *batchv1alpha1.SequentialJob, step helper.Step, attempt int32) (*batchv1.Job, *jobsetv1alpha2.JobSet) {
	labels := childLabels(sj, step, attempt)
	switch {
	case step.JobSet != nil:
		return nil, newJobSet(sj, step, labels)
	case step.Job != nil:
		template := step.Job.DeepCopy()
		return newJob(sj, step, template.ObjectMeta, template.Spec, labels), nil
	}
	spec := batchv1.JobSpec{BackoffLimit: copied(sj.Spec.BackoffLimit)}
	if sj.Spec.Template != nil {
		sj.Spec.Template.DeepCopyInto(&spec.Template)
	}
	spec.Template.Spec.Containers = []corev1.Container{*step.Container.DeepCopy()}
	if spec.Template.Spec.RestartPolicy == "" {
		spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	return newJob(sj, step, metav1.ObjectMeta{}, spec, labels), nil
}

func newJob(sj *batchv1alpha1.SequentialJob, step helper.Step, template metav1.ObjectMeta, spec batchv1.JobSpec,
	labels map[string]string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: childMeta(sj, step, template, labels), Spec: spec}
	job.Spec.TTLSecondsAfterFinished = nil // counts from the end of the step
	job.Spec.Suspend = startsSuspended(job.Labels)
	job.Spec.Template.Labels = hostplan.Merged(job.Spec.Template.Labels, labels)
	return job
}

func newJobSet(sj *batchv1alpha1.SequentialJob, step helper.Step, labels map[string]string) *jobsetv1alpha2.JobSet {
	template := step.JobSet.DeepCopy()
	js := &jobsetv1alpha2.JobSet{ObjectMeta: childMeta(sj, step, template.ObjectMeta, labels), Spec: template.Spec}
	js.Spec.TTLSecondsAfterFinished = nil // counts from the end of the step
	js.Spec.Suspend = startsSuspended(js.Labels)
	for i := range js.Spec.ReplicatedJobs {
		pods := &js.Spec.ReplicatedJobs[i].Template.Spec.Template
		pods.Labels = hostplan.Merged(pods.Labels, labels)
	}
	return js
}

// childMeta returns the metadata of a child: what its template says, the queue of the sequence unless the template has one,
// and the labels by which the child is found.
func childMeta(sj *batchv1alpha1.SequentialJob, step helper.Step, template metav1.ObjectMeta, labels map[string]string) metav1.ObjectMeta {
	queue := map[string]string{}
	for _, key := range helper.InheritedLabels {
		if value, found := sj.Labels[key]; found {
			queue[key] = value
		}
	}
	return metav1.ObjectMeta{
		Name: helper.ChildName(sj.Name, step.Index), Namespace: sj.Namespace,
		Labels: hostplan.Merged(queue, template.Labels, labels), Annotations: template.Annotations,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(sj, batchv1alpha1.SchemeGroupVersion.WithKind("SequentialJob"))},
	}
}

func childLabels(sj *batchv1alpha1.SequentialJob, step helper.Step, attempt int32) map[string]string {
	return map[string]string{
		batchv1alpha1.SequentialJobNameKey: sj.Name,
		batchv1alpha1.SequentialJobUIDKey:  string(sj.UID),
		batchv1alpha1.StepIndexKey:         strconv.Itoa(step.Index),
		batchv1alpha1.StepNameKey:          step.Name,
		batchv1alpha1.StepAttemptKey:       strconv.Itoa(int(attempt)),
		batchv1alpha1.PartOfKey:            sj.Name,
	}
}

// startsSuspended returns the first spec.suspend of a child. Kueue starts those that have a queue.
func startsSuspended(labels map[string]string) *bool {
	if labels[helper.QueueKey] != "" {
		return ptr.To(true)
	}
	return nil
}

func copied[T any](value *T) *T {
	if value == nil {
		return nil
	}
	return ptr.To(*value)
}
