// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

func waiting(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func ended(code int32, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}
}

func running() corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func conditions(ofs ...corev1.PodConditionType) (list []corev1.PodCondition) {
	for _, of := range ofs {
		list = append(list, corev1.PodCondition{Type: of, Status: corev1.ConditionTrue})
	}
	return list
}

func TestPodState(t *testing.T) {
	deleted := metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}
	sidecar := corev1.Container{Name: "s", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want string
	}{
		"one without a node": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, want: "Pending"},
		"one that is held back by a gate": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}}}, want: "SchedulingGated"},
		"one whose containers run": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{running()},
			Conditions: conditions(corev1.PodReady)}}, want: "Running"},
		"one whose container waits": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{waiting("CrashLoopBackOff"), running()}}}, want: "CrashLoopBackOff"},
		"the first of two containers with trouble is named": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{ended(1, "Error"), waiting("ImagePullBackOff")}}}, want: "Error"},
		"one container is done, and the pod is ready": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: conditions(corev1.PodReady),
			ContainerStatuses: []corev1.ContainerStatus{ended(0, "Completed"), running()}}}, want: "Running"},
		"one container is done, and the pod is not ready": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{ended(0, "Completed"), running()}}}, want: "NotReady"},
		"one that was killed without a reason": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Signal: 9, ExitCode: 137}}}}}}, want: "Signal:9"},
		"one that ended without a reason": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed,
			ContainerStatuses: []corev1.ContainerStatus{ended(2, "")}}}, want: "ExitCode:2"},
		"one that the kubelet evicted": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}}, want: "Evicted"},
		"one whose first init container runs": {pod: corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "a"}, {Name: "b"}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "a"}, {Name: "b"}}}}, want: "Init:0/2"},
		"one whose second init container failed": {pod: corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "a"}, {Name: "b"}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{ended(0, "Completed"), ended(1, "Error")}}}, want: "Init:Error"},
		"one whose init container cannot be pulled": {pod: corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "a"}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{waiting("ErrImagePull")}}}, want: "Init:ErrImagePull"},
		"a sidecar that has started holds nothing back": {pod: corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{sidecar, {Name: "b"}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "s", Started: ptr.To(true)}, {Name: "b"}}}}, want: "Init:1/2"},
		"one that is initialized shows its containers": {pod: corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{sidecar}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions(corev1.PodInitialized), InitContainerStatuses: []corev1.ContainerStatus{{Name: "s"}},
				ContainerStatuses: []corev1.ContainerStatus{waiting("ContainerCreating")}}}, want: "ContainerCreating"},
		"one that is being deleted": {pod: corev1.Pod{ObjectMeta: deleted, Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{running()}}}, want: "Terminating"},
		"one that failed before it was deleted": {pod: corev1.Pod{ObjectMeta: deleted, Status: corev1.PodStatus{Phase: corev1.PodFailed,
			ContainerStatuses: []corev1.ContainerStatus{ended(1, "OOMKilled")}}}, want: "OOMKilled"},
		"one whose node is lost": {pod: corev1.Pod{ObjectMeta: deleted, Status: corev1.PodStatus{Phase: corev1.PodRunning, Reason: "NodeLost"}}, want: "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, snapshot.PodState(&tc.pod)); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodRequests(t *testing.T) {
	cpu := func(n string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}}
	}
	sidecar := corev1.Container{Resources: cpu("1"), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"containers add up":                        {spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: cpu("1")}, {Resources: cpu("500m")}}}, want: "1500m"},
		"a larger init container counts alone":     {spec: corev1.PodSpec{InitContainers: []corev1.Container{{Resources: cpu("3")}}, Containers: []corev1.Container{{Resources: cpu("1")}}}, want: "3"},
		"a smaller init container is of no moment": {spec: corev1.PodSpec{InitContainers: []corev1.Container{{Resources: cpu("1")}}, Containers: []corev1.Container{{Resources: cpu("2")}}}, want: "2"},
		"sidecars run beside containers":           {spec: corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{{Resources: cpu("2")}}}, want: "3"},
		"sidecars run beside later init containers": {spec: corev1.PodSpec{InitContainers: []corev1.Container{sidecar, {Resources: cpu("4")}},
			Containers: []corev1.Container{{Resources: cpu("2")}}}, want: "5"},
		"the overhead is added":                           {spec: corev1.PodSpec{Overhead: cpu("250m").Requests, Containers: []corev1.Container{{Resources: cpu("1")}}}, want: "1250m"},
		"requests of the pod replace those of containers": {spec: corev1.PodSpec{Resources: ptr.To(cpu("8")), Containers: []corev1.Container{{Resources: cpu("1")}}}, want: "8"},
	} {
		t.Run(name, func(t *testing.T) {
			got := snapshot.PodRequests(&tc.spec)[corev1.ResourceCPU]
			if got.Cmp(resource.MustParse(tc.want)) != 0 {
				t.Errorf("cpu: got %s, want %s", got.String(), tc.want)
			}
		})
	}
}

func TestDomainsOfPods(t *testing.T) {
	on := func(node, zone string) *corev1.Pod {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		if zone != "" {
			pod.Labels = map[string]string{corev1.LabelTopologyZone: zone, "rack": zone}
		}
		return pod
	}
	for name, tc := range map[string]struct {
		pods      []*corev1.Pod
		label     string
		want      map[string]string
		wantKnown bool
	}{
		"all pods have the label":              {pods: []*corev1.Pod{on("a", "x"), on("b", "y"), on("a", "x")}, label: corev1.LabelTopologyZone, want: map[string]string{"a": "x", "b": "y"}, wantKnown: true},
		"pods without a node need none":        {pods: []*corev1.Pod{on("", ""), on("a", "x")}, label: corev1.LabelTopologyZone, want: map[string]string{"a": "x"}, wantKnown: true},
		"one pod lacks the label":              {pods: []*corev1.Pod{on("a", "x"), on("b", "")}, label: corev1.LabelTopologyZone},
		"a label that is not that of a node":   {pods: []*corev1.Pod{on("a", "x")}, label: "rack"},
		"without pods there is nothing to ask": {label: "rack", want: map[string]string{}, wantKnown: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := snapshot.DomainsOfPods(tc.pods, tc.label)
			if diff := cmp.Diff(tc.want, got); diff != "" || known != tc.wantKnown {
				t.Errorf("known %v, domains (-want +got):\n%s", known, diff)
			}
		})
	}
}
