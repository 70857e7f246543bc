// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"
)

func TestNewShape(t *testing.T) {
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	for name, test := range map[string]struct {
		spec         corev1.PodSpec
		env          Environment
		wantRequests string
		wantPriority int32
		wantNever    bool
		wantUnknown  string
	}{
		"a pod that requests nothing": {wantRequests: "pods=1"},
		"limits stand in for requests": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(list("cpu", "1"), list("cpu", "2", "memory", "1Gi"))}}, wantRequests: "cpu=1,memory=1Gi,pods=1",
		},
		"init containers run first, sidecars stay": {
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{
					container(list("cpu", "5"), nil),
					{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: list("memory", "1Gi")}},
				},
				Containers: []corev1.Container{container(list("cpu", "1"), nil), container(list("cpu", "1"), nil)},
			},
			wantRequests: "cpu=5,memory=1Gi,pods=1",
		},
		"defaults of the namespace": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(list("cpu", "1"), nil), container(nil, list("memory", "2Gi"))}},
			env: Environment{LimitRanges: []*corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
				{Type: corev1.LimitTypePod, DefaultRequest: list("cpu", "100")},
				{Type: corev1.LimitTypeContainer, DefaultRequest: list("cpu", "500m", "memory", "1Gi")},
			}}}}},
			wantRequests: "cpu=1500m,memory=3Gi,pods=1",
		},
		"overhead of a runtime class": {
			env:          Environment{RuntimeClass: &nodev1.RuntimeClass{Overhead: &nodev1.Overhead{PodFixed: list("memory", "120Mi")}}},
			wantRequests: "memory=120Mi,pods=1",
		},
		"priority class": {
			env:          Environment{PriorityClass: &schedulingv1.PriorityClass{Value: 9, PreemptionPolicy: ptr.To(corev1.PreemptNever)}},
			wantRequests: "pods=1", wantPriority: 9, wantNever: true,
		},
		"priority of the template": {
			spec:         corev1.PodSpec{Priority: ptr.To[int32](-3), PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority)},
			env:          Environment{PriorityClass: &schedulingv1.PriorityClass{Value: 9, PreemptionPolicy: ptr.To(corev1.PreemptNever)}},
			wantRequests: "pods=1", wantPriority: -3,
		},
		"what only the scheduler knows": {
			spec: corev1.PodSpec{
				ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}, SchedulerName: "volcano", SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}},
				Volumes:    []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}},
				Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 80}}}}, TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{}},
			},
			wantRequests: "pods=1",
			wantUnknown:  "resource claims, volumes, host ports, spread and affinity among pods, the rules of another scheduler, scheduling gates",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.spec.DeepCopy()
			s, err := NewShape(&corev1.PodTemplateSpec{Spec: test.spec}, test.env)
			if err != nil {
				t.Fatal(err)
			}
			if got := amountsText(t, s.requests); got != test.wantRequests {
				t.Errorf("requests are %s, want %s", got, test.wantRequests)
			}
			if s.Priority() != test.wantPriority || s.preempts == test.wantNever || s.unknown.String() != test.wantUnknown {
				t.Errorf("got priority %d, preempts %t, unknown %q", s.Priority(), s.preempts, s.unknown)
			}
			if before.String() != test.spec.String() {
				t.Error("the template was changed")
			}
		})
	}
}
