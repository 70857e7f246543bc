// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// SequentialJob returns a versioned SequentialJob and applies the changes in order. It has no steps of its own.
func SequentialJob(name string, change ...func(*batchv1alpha1.SequentialJob)) *batchv1alpha1.SequentialJob {
	sj := &batchv1alpha1.SequentialJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1alpha1.SchemeGroupVersion.String(), Kind: "SequentialJob"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID(name), Generation: 1},
	}
	for _, f := range change {
		f(sj)
	}
	return sj
}

// WithContainers adds containers as steps.
func WithContainers(names ...string) func(*batchv1alpha1.SequentialJob) {
	return func(sj *batchv1alpha1.SequentialJob) {
		for _, name := range names {
			sj.Spec.Containers = append(sj.Spec.Containers, corev1.Container{Name: name, Image: "busybox"})
		}
	}
}

// WithStep adds a step.
func WithStep(step batchv1alpha1.SequentialJobStep) func(*batchv1alpha1.SequentialJob) {
	return func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Steps = append(sj.Spec.Steps, step) }
}

// Started records the next step as started, in its first attempt, and applies the changes to the record.
func Started(state batchv1alpha1.StepState, change ...func(*batchv1alpha1.SequentialJobStepStatus)) func(*batchv1alpha1.SequentialJob) {
	return func(sj *batchv1alpha1.SequentialJob) {
		index := len(sj.Status.Steps)
		step := helper.Steps(&sj.Spec)[index]
		status := batchv1alpha1.SequentialJobStepStatus{
			Name: step.Name, Kind: step.Kind(), ChildName: helper.ChildName(sj.Name, index), State: state, Attempts: 1,
		}
		for _, f := range change {
			f(&status)
		}
		sj.Status.Steps = append(sj.Status.Steps, status)
		sj.Status.ObservedGeneration = sj.Generation
		progress := &sj.Status.Progress
		progress.CurrentIndex = ptr.To(int32(index))
		switch state {
		case batchv1alpha1.StepSucceeded:
			progress.CurrentIndex = ptr.To(int32(index + 1))
			progress.CompletedIndices = append(progress.CompletedIndices, int32(index))
			sj.Status.State.Succeeded++
		case batchv1alpha1.StepFailed:
			progress.FailedIndex, progress.FailureReason = ptr.To(int32(index)), status.Reason
			sj.Status.State.Failed++
		default:
			sj.Status.State.Active = 1
		}
	}
}

// StepJob returns the Job of a step, of the current attempt, and applies the changes.
func StepJob(sj *batchv1alpha1.SequentialJob, index int, change ...func(*batchv1.Job)) *batchv1.Job {
	name := helper.ChildName(sj.Name, index)
	job := &batchv1.Job{
		ObjectMeta: StepMeta(sj, index, name),
		Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](6)},
	}
	for _, f := range change {
		f(job)
	}
	return job
}

// StepMeta is the metadata of the child of a step.
func StepMeta(sj *batchv1alpha1.SequentialJob, index int, name string) metav1.ObjectMeta {
	attempts := int32(1)
	if index < len(sj.Status.Steps) {
		attempts = sj.Status.Steps[index].Attempts
	}
	return metav1.ObjectMeta{
		Name: name, Namespace: sj.Namespace, UID: types.UID(name + "-uid"),
		Labels: map[string]string{
			batchv1alpha1.SequentialJobNameKey: sj.Name, batchv1alpha1.SequentialJobUIDKey: string(sj.UID), batchv1alpha1.StepIndexKey: fmt.Sprint(index),
			batchv1alpha1.StepNameKey: helper.Steps(&sj.Spec)[index].Name, batchv1alpha1.StepAttemptKey: fmt.Sprint(attempts),
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(sj, batchv1alpha1.SchemeGroupVersion.WithKind("SequentialJob"))},
	}
}

// StepPod returns a pod of the Job of a step that runs and is ready, and applies the changes.
func StepPod(job *batchv1.Job, suffix string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + "-" + suffix, Namespace: job.Namespace, UID: types.UID(job.Name + "-" + suffix), Labels: job.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}
