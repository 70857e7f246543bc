// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// noController is the name of a controller that does not exist: sets that it manages have no Jobs, so that only the API
// is measured.
const noController = "jobset-apiserver.io/nobody"

// typicalSet is a set of the size that those for a distributed training have: a launcher and workers, whose containers
// have commands, variables, resources and volumes.
func typicalSet(name, namespace string) *jobsetv1alpha2.JobSet {
	shaped := func(containers int) func(*jobsetv1alpha2.ReplicatedJob) {
		return func(rj *jobsetv1alpha2.ReplicatedJob) {
			rj.Template.Spec.BackoffLimit = ptr.To[int32](0)
			rj.Template.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			rj.Template.Spec.Template.Spec.Containers = nil
			for i := range containers {
				rj.Template.Spec.Template.Spec.Containers = append(rj.Template.Spec.Template.Spec.Containers, typicalContainer(i))
			}
			rj.Template.Spec.Template.Spec.Volumes = []corev1.Volume{
				{Name: "code", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "training-code"}}}},
				{Name: "shared-memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			}
		}
	}
	return builders.JobSet(name, builders.WithJobs("launcher", 1, 1, shaped(1)), builders.WithJobs("workers", 2, 4, shaped(2)),
		func(js *jobsetv1alpha2.JobSet) {
			js.Namespace = namespace
			js.Labels = map[string]string{"app.kubernetes.io/name": "training", "team": "research"}
			js.Spec.ManagedBy = ptr.To(noController)
			js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 3}
			js.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{
				Operator: jobsetv1alpha2.OperatorAll, TargetReplicatedJobs: []string{"launcher", "workers"},
			}
		})
}

func typicalContainer(i int) corev1.Container {
	sizes := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("8")}
	container := corev1.Container{
		Name: fmt.Sprint("container-", i), Image: "registry.example.com/research/training:v1.2.3",
		Command:   []string{"torchrun", "--nnodes=8", "--nproc-per-node=8", "--rdzv-backend=c10d", "/workspace/train.py"},
		Resources: corev1.ResourceRequirements{Requests: sizes, Limits: sizes},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "code", MountPath: "/workspace"}, {Name: "shared-memory", MountPath: "/dev/shm"},
		},
	}
	for n := range 5 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", n), Value: "a value of usual length"})
	}
	return container
}

// typicalStatus is the status of a set that runs.
func typicalStatus(js *jobsetv1alpha2.JobSet, restarts int32) {
	js.Status = jobsetv1alpha2.JobSetStatus{
		Restarts: restarts,
		Conditions: []metav1.Condition{{
			Type: jobsetv1alpha2.JobSetStartupPolicyCompleted, Status: metav1.ConditionTrue, Reason: "StartupPolicyCompleted",
			Message: "startup policy has completed", LastTransitionTime: metav1.Now().Rfc3339Copy(),
		}},
		ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{
			{Name: "launcher", Ready: 1, Active: 1}, {Name: "workers", Ready: 2, Active: 2},
		},
	}
}

// restSet is a set whose Jobs exist and do nothing.
func restSet(name, namespace string, jobs int) *jobsetv1alpha2.JobSet {
	return builders.JobSet(name, builders.WithJobs("workers", int32(jobs), 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.Template.Spec = batchv1.JobSpec{Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), CompletionMode: ptr.To(batchv1.IndexedCompletion)}
		rj.Template.Spec.Template.Spec = corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{typicalContainer(0)},
		}
		rj.Template.Spec.Template.Spec.Volumes = []corev1.Volume{
			{Name: "code", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "shared-memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
	}), func(js *jobsetv1alpha2.JobSet) {
		js.Namespace = namespace
		js.Spec.Suspend = ptr.To(true)
	})
}
