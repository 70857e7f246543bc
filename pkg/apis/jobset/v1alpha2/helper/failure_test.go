// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestFirstFailureOfPodThatRestartsAllContainers has a container fail in a pod with an agent as a sidecar. kubelet
// kills the other containers, and times are in seconds.
func TestFirstFailureOfPodThatRestartsAllContainers(t *testing.T) {
	ended := func(code int32, second int64, reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.Unix(second, 0)}}
	}
	for name, tc := range map[string]struct {
		agent, main, other corev1.ContainerState
		want               string
	}{
		"a worker fails, the agent is killed":                {ended(137, 5, "Error"), ended(3, 5, "Error"), ended(137, 5, "Error"), "main 3"},
		"the agent requests a restart, the worker is killed": {ended(1, 5, "Error"), ended(137, 5, "Error"), ended(137, 5, "Error"), "agent 1"},
		"a worker is killed, then the agent":                 {ended(137, 6, "Error"), ended(137, 5, "Error"), ended(137, 6, "Error"), "main 137"},
		"all are killed within a second":                     {ended(137, 5, "Error"), ended(0, 5, "Completed"), ended(137, 5, "Error"), "other 137"},
		"both workers and the agent are killed":              {ended(137, 5, "Error"), ended(137, 5, "Error"), ended(137, 5, "Error"), "main 137"},
		"a worker has too little memory":                     {ended(137, 5, "Error"), ended(137, 5, "OOMKilled"), ended(137, 5, "Error"), "main 137"},
		"the agent fails a second earlier":                   {ended(2, 4, "Error"), ended(3, 5, "Error"), ended(137, 5, "Error"), "agent 2"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			pod.Spec.InitContainers = []corev1.Container{{Name: "agent", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), RestartPolicyRules: []corev1.ContainerRestartRule{
				{Action: corev1.ContainerRestartRuleActionRestartAllContainers},
			}}}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "agent", LastTerminationState: tc.agent}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", LastTerminationState: tc.main}, {Name: "other", LastTerminationState: tc.other}}
			cause := FailureOfPod(pod).Cause
			if got := fmt.Sprint(cause.Container, " ", *cause.ExitCode); got != tc.want {
				t.Errorf("first failure %q, not %q", got, tc.want)
			}
		})
	}
}

// TestContainersRemovedToRestart has a worker whose failure restarts all containers of its pod. Those that kubelet
// removes for that have not failed.
func TestContainersRemovedToRestart(t *testing.T) {
	removed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "RestartingAllContainers"}}
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", FinishedAt: metav1.Unix(1000, 0)}}
	pod := &corev1.Pod{Status: corev1.PodStatus{
		Phase:                 corev1.PodRunning,
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "agent", LastTerminationState: removed}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "worker", LastTerminationState: failed}},
	}}
	if got := FailureOfPod(pod); got == nil || got.Cause.Container != "worker" || *got.Cause.ExitCode != 3 {
		t.Errorf("got %+v, want the worker", got)
	}
	pod.Status.ContainerStatuses = nil
	if got := FailureOfPod(pod); got != nil {
		t.Errorf("got %+v, want nothing", got)
	}
}
