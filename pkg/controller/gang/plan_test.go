// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
)

func TestProviders(t *testing.T) {
	for provider, want := range map[plan.Provider]struct {
		resource string
		own      bool
	}{
		plan.Volcano:         {"scheduling.volcano.sh/v1beta1, Resource=podgroups", true},
		plan.Coscheduling:    {"scheduling.x-k8s.io/v1alpha1, Resource=podgroups", true},
		plan.Kubernetes:      {"scheduling.k8s.io/v1beta1, Resource=podgroups", false},
		plan.KubernetesAlpha: {"scheduling.k8s.io/v1alpha2, Resource=podgroups", false},
		"":                   {"scheduling.k8s.io/v1beta1, Resource=podgroups", false},
	} {
		if got := provider.Resource().String(); got != want.resource {
			t.Errorf("the resource of %q is %s, want %s", provider, got, want.resource)
		}
		if got := provider.OwnKind(); got != want.own {
			t.Errorf("%q has an own kind: %t, want %t", provider, got, want.own)
		}
	}
}

func TestSetSpec(t *testing.T) {
	resources := map[string]any{"cpu": "2"}
	plain := map[string]any{"minMember": int64(3), "minResources": resources}
	all := map[string]string{"volcano.sh/preemptable": "true", "volcano.sh/": "", "scheduling.volcano.sh/queue-name": "research", "example.com/volcano.sh/x": "no", "volcano.sh": "no"}
	for name, tc := range map[string]struct {
		provider        plan.Provider
		annotations     map[string]string
		want            map[string]any
		wantAnnotations map[string]string
	}{
		"Volcano": {provider: plan.Volcano, want: plain},
		"Volcano, with a queue": {
			provider: plan.Volcano, annotations: map[string]string{"scheduling.volcano.sh/queue-name": "research"},
			want: map[string]any{"minMember": int64(3), "minResources": resources, "queue": "research"},
		},
		"Volcano, with an empty queue": {provider: plan.Volcano, annotations: map[string]string{"scheduling.volcano.sh/queue-name": ""}, want: plain},
		"Volcano, with annotations": {
			provider: plan.Volcano, annotations: all, want: map[string]any{"minMember": int64(3), "minResources": resources, "queue": "research"},
			wantAnnotations: map[string]string{"volcano.sh/preemptable": "true", "volcano.sh/": ""},
		},
		"coscheduling":                   {provider: plan.Coscheduling, want: plain},
		"coscheduling, with annotations": {provider: plan.Coscheduling, annotations: all, want: plain},
	} {
		t.Run(name, func(t *testing.T) {
			group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"former": true}}}
			tc.provider.SetSpec(group, &metav1.ObjectMeta{Annotations: tc.annotations}, 3, resources)
			if d := cmp.Diff(tc.want, group.Object["spec"]); d != "" {
				t.Error("spec (-want +got):\n" + d)
			}
			if d := cmp.Diff(tc.wantAnnotations, group.GetAnnotations()); d != "" {
				t.Error("annotations (-want +got):\n" + d)
			}
			group.DeepCopy() // panics if a value is none of decoded JSON
		})
	}
}

// list are amounts of CPU and memory; empty ones are left out.
func list(cpu, memory string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if amount != "" {
			out[name] = resource.MustParse(amount)
		}
	}
	return out
}

func container(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

// pods are as many pods as asked for, of one container each.
func pods(number int64, requests, limits corev1.ResourceList) plan.Pods {
	return of(number, corev1.PodSpec{Containers: []corev1.Container{container(requests, limits)}})
}

func of(number int64, spec corev1.PodSpec) plan.Pods {
	return plan.Pods{Template: &corev1.PodTemplateSpec{Spec: spec}, Number: number}
}

func TestMinResources(t *testing.T) {
	sidecar := container(list("1", ""), nil)
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	one := []corev1.Container{container(list("1", ""), nil)}
	for name, tc := range map[string]struct {
		pods []plan.Pods
		want map[string]any
	}{
		"no pods":                 {nil, map[string]any{}},
		"no requests":             {[]plan.Pods{pods(4, nil, nil)}, map[string]any{}},
		"none of a template":      {[]plan.Pods{pods(0, list("1", ""), nil), pods(2, list("", "1Gi"), nil)}, map[string]any{"memory": "2Gi"}},
		"pods of one template":    {[]plan.Pods{pods(4, list("250m", "1Gi"), nil)}, map[string]any{"cpu": "1", "memory": "4Gi"}},
		"pods of two templates":   {[]plan.Pods{pods(1, list("1", ""), nil), pods(3, list("500m", "1Gi"), nil)}, map[string]any{"cpu": "2500m", "memory": "3Gi"}},
		"limits alone":            {[]plan.Pods{pods(2, nil, list("2", ""))}, map[string]any{"cpu": "4"}},
		"requests below limits":   {[]plan.Pods{pods(2, list("1", ""), list("2", "1Gi"))}, map[string]any{"cpu": "2", "memory": "2Gi"}},
		"containers":              {[]plan.Pods{of(2, corev1.PodSpec{Containers: []corev1.Container{container(list("1", ""), nil), container(list("2", ""), nil)}})}, map[string]any{"cpu": "6"}},
		"an init container":       {[]plan.Pods{of(2, corev1.PodSpec{Containers: one, InitContainers: []corev1.Container{container(nil, list("4", ""))}})}, map[string]any{"cpu": "8"}},
		"a sidecar":               {[]plan.Pods{of(2, corev1.PodSpec{Containers: one, InitContainers: []corev1.Container{sidecar}})}, map[string]any{"cpu": "4"}},
		"overhead":                {[]plan.Pods{of(2, corev1.PodSpec{Containers: one, Overhead: list("250m", "")})}, map[string]any{"cpu": "2500m"}},
		"requests of the pod":     {[]plan.Pods{of(2, corev1.PodSpec{Containers: one, Resources: &corev1.ResourceRequirements{Requests: list("3", "")}})}, map[string]any{"cpu": "6"}},
		"limits of the pod":       {[]plan.Pods{of(2, corev1.PodSpec{Containers: []corev1.Container{{}}, Resources: &corev1.ResourceRequirements{Limits: list("3", "")}})}, map[string]any{"cpu": "6"}},
		"more than 64 bits":       {[]plan.Pods{pods(3, list("9223372036854775807", ""), nil)}, map[string]any{"cpu": "27670116110564327421"}},
		"an extended resource":    {[]plan.Pods{pods(8, nil, corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")})}, map[string]any{"nvidia.com/gpu": "64"}},
		"a resource of one alone": {[]plan.Pods{pods(1, list("1", ""), nil), pods(1, nil, nil)}, map[string]any{"cpu": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var before []corev1.PodTemplateSpec
			for _, p := range tc.pods {
				before = append(before, *p.Template.DeepCopy())
			}
			if d := cmp.Diff(tc.want, plan.MinResources(tc.pods...)); d != "" {
				t.Error("resources (-want +got):\n" + d)
			}
			for i, p := range tc.pods {
				if d := cmp.Diff(before[i], *p.Template); d != "" {
					t.Error("the template was changed (-want +got):\n" + d)
				}
			}
		})
	}
}
