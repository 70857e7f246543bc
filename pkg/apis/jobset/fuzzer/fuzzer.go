// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills JobSets with random values for round-trip tests. Values are such that decoding adds no default:
// what the defaults of v1alpha2 would fill in is filled in here. Embedded Job templates and volume claims stay small,
// because a wholly random pod template costs more time than it finds and would have to mirror every default of the
// core API.
package fuzzer

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Funcs returns the filling functions of the internal and of the versioned types.
func Funcs(runtimeserializer.CodecFactory) []any {
	return append([]any{
		fillJobTemplate,
		fillClaim,
		func(rj *jobset.ReplicatedJob, c randfill.Continue) {
			c.FillNoCustom(rj)
			setIfNil(&rj.GroupName, jobset.DefaultGroupName)
			setIfNil(&rj.Replicas, 1)
		},
		func(p *jobset.FailurePolicy, c randfill.Continue) {
			c.FillNoCustom(p)
			setIfZero(&p.RestartStrategy, jobset.RestartStrategyRecreate)
		},
		func(p *jobset.VolumeRetentionPolicy, c randfill.Continue) {
			c.FillNoCustom(p)
			setIfNil(&p.WhenDeleted, jobset.RetentionPolicyDelete)
		},
	}, versioned()...)
}

func versioned() []any {
	return []any{
		func(rj *v1alpha2.ReplicatedJob, c randfill.Continue) {
			c.FillNoCustom(rj)
			setIfNil(&rj.GroupName, v1alpha2.DefaultGroupName)
			setIfNil(&rj.Replicas, 1)
		},
		func(p *v1alpha2.FailurePolicy, c randfill.Continue) {
			c.FillNoCustom(p)
			setIfZero(&p.RestartStrategy, v1alpha2.RestartStrategyRecreate)
		},
		func(p *v1alpha2.VolumeRetentionPolicy, c randfill.Continue) {
			c.FillNoCustom(p)
			setIfNil(&p.WhenDeleted, v1alpha2.RetentionPolicyDelete)
		},
	}
}

func setIfNil[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}

func setIfZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// fillJobTemplate fills what the server or the controller of JobSets looks at, and of the rest one field of every kind
// that has a wire form of its own: quantities, maps, lists of structures, pointers to zero.
func fillJobTemplate(t *batchv1.JobTemplateSpec, c randfill.Continue) {
	*t = batchv1.JobTemplateSpec{}
	c.Fill(&t.Labels)
	c.Fill(&t.Annotations)
	c.Fill(&t.Spec.Parallelism)
	c.Fill(&t.Spec.Completions)
	c.Fill(&t.Spec.BackoffLimit)
	c.Fill(&t.Spec.Suspend)
	if c.Bool() {
		t.Spec.CompletionMode = ptr.To([]batchv1.CompletionMode{batchv1.IndexedCompletion, batchv1.NonIndexedCompletion}[c.Intn(2)])
	}
	if c.Bool() {
		t.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
	}
	pod := &t.Spec.Template
	c.Fill(&pod.Labels)
	c.Fill(&pod.Annotations)
	c.Fill(&pod.Spec.NodeSelector)
	c.Fill(&pod.Spec.Tolerations)
	c.Fill(&pod.Spec.SchedulingGates)
	c.Fill(&pod.Spec.Subdomain)
	c.Fill(&pod.Spec.TerminationGracePeriodSeconds)
	pod.Spec.RestartPolicy = []corev1.RestartPolicy{"", corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}[c.Intn(3)]
	for i := range c.Intn(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, Container(i, c))
	}
	if c.Bool() {
		pod.Spec.InitContainers = []corev1.Container{Container(0, c)}
	}
}

// Container returns a small container.
func Container(i int, c randfill.Continue) corev1.Container {
	out := corev1.Container{Name: fmt.Sprintf("container-%d", i)}
	c.Fill(&out.Image)
	c.Fill(&out.Command)
	c.Fill(&out.VolumeMounts)
	if c.Bool() {
		out.Ports = []corev1.ContainerPort{{ContainerPort: c.Int31(), Protocol: corev1.ProtocolTCP}}
	}
	if c.Bool() {
		name := &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}
		out.Env = []corev1.EnvVar{{Name: "RANK", ValueFrom: &corev1.EnvVarSource{FieldRef: name}}}
	}
	if c.Bool() {
		out.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(c.Intn(8000)), resource.DecimalSI)}
		out.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(c.Intn(1<<30)), resource.BinarySI)}
	}
	return out
}

func fillClaim(pvc *corev1.PersistentVolumeClaim, c randfill.Continue) {
	*pvc = corev1.PersistentVolumeClaim{}
	c.Fill(&pvc.Name)
	c.Fill(&pvc.Labels)
	c.Fill(&pvc.Annotations)
	c.Fill(&pvc.Spec.StorageClassName)
	pvc.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(int64(c.Intn(1<<30)), resource.BinarySI)}
}
