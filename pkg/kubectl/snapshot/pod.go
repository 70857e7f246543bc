// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// PodState is what a pod does, in one word like that of the column STATUS of `kubectl get pods`: Running, Completed, Error,
// CrashLoopBackOff, Init:0/2, Terminating and so on.
func PodState(pod *corev1.Pod) string {
	state := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		state = pod.Status.Reason
	}
	if c := PodCondition(pod, corev1.PodScheduled); c != nil && c.Reason == corev1.PodReasonSchedulingGated {
		state = corev1.PodReasonSchedulingGated
	}
	initializing := initState(pod)
	if initializing != "" {
		state = initializing
	} else if worst := containersState(pod); worst != "" {
		state = worst
	}
	switch {
	case pod.DeletionTimestamp == nil || PodEnded(pod):
		return state
	case pod.Status.Reason == helper.ReasonNodeLost:
		return "Unknown"
	}
	return "Terminating"
}

// initState is the state of a pod whose init containers have work to do, or "".
func initState(pod *corev1.Pod) string {
	if c := PodCondition(pod, corev1.PodInitialized); c != nil && c.Status == corev1.ConditionTrue {
		return ""
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		ended, waiting := status.State.Terminated, status.State.Waiting
		switch {
		case ended != nil && ended.ExitCode == 0, ptr.Deref(status.Started, false) && isSidecar(pod, status.Name):
			continue
		case ended != nil:
			return "Init:" + endedState(ended)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != cli.ReasonPodInitializing:
			return "Init:" + waiting.Reason
		}
		return fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
	}
	return ""
}

func isSidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	})
}

// containersState is the state of the first container that waits or has ended; "" when all of them run, or none has a state.
func containersState(pod *corev1.Pod) string {
	state, running := "", false
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		status := &pod.Status.ContainerStatuses[i]
		ended, waiting := status.State.Terminated, status.State.Waiting
		switch {
		case waiting != nil && waiting.Reason != "":
			state = waiting.Reason
		case ended != nil:
			state = endedState(ended)
		case status.Ready && status.State.Running != nil:
			running = true
		}
	}
	if state == cli.ReasonCompleted && running {
		// One container is done and others go on.
		if PodReady(pod) {
			return string(corev1.PodRunning)
		}
		return "NotReady"
	}
	return state
}

func endedState(ended *corev1.ContainerStateTerminated) string {
	switch {
	case ended.Reason != "":
		return ended.Reason
	case ended.Signal != 0:
		return fmt.Sprintf("Signal:%d", ended.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", ended.ExitCode)
}

// PodReady reports whether the pod has the condition Ready.
func PodReady(pod *corev1.Pod) bool {
	c := PodCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// PodEnded reports whether all containers of the pod have ended and will not be restarted.
func PodEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// PodUnschedulable reports whether the scheduler has found no node for the pod.
func PodUnschedulable(pod *corev1.Pod) bool {
	c := PodCondition(pod, corev1.PodScheduled)
	return pod.Spec.NodeName == "" && c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// ContainerRestarts sums up how often containers of the pod were started again.
func ContainerRestarts(pod *corev1.Pod) (sum int) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			sum += int(statuses[i].RestartCount)
		}
	}
	return sum
}

// PodCondition returns the condition of a pod, whatever its status; nil when the pod has none of the type.
func PodCondition(pod *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == of {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// PodRequests returns what the scheduler sets aside for a pod.
func PodRequests(spec *corev1.PodSpec) corev1.ResourceList {
	return resource.PodRequests(&corev1.Pod{Spec: *spec}, resource.PodResourcesOptions{})
}

// AddResources adds resources to a sum.
func AddResources(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total, found := sum[name]
		if !found {
			sum[name] = quantity.DeepCopy()
			continue
		}
		total.Add(quantity)
		sum[name] = total
	}
}

// Domains returns, by name of node, the value of a label that nodes have, for the nodes of the pods. Newer clusters copy the
// labels of zone and region to pods; where they did, no node is read. Otherwise the metadata of all nodes is, in one call.
func Domains(ctx context.Context, c *cli.Clients, pods []*corev1.Pod, label string) (map[string]string, error) {
	if domains, known := DomainsOfPods(pods, label); known {
		return domains, nil
	}
	objects, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client of metadata: %w", err)
	}
	nodes, err := objects.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	domains := map[string]string{}
	for i := range nodes.Items {
		domains[nodes.Items[i].Name] = nodes.Items[i].Labels[label]
	}
	return domains, nil
}

// DomainsOfPods reads the domains from the labels of the pods. They are not known when a pod on a node lacks the label, and
// not when the label is one that the cluster does not copy, as then it says nothing about the node.
func DomainsOfPods(pods []*corev1.Pod, label string) (domains map[string]string, known bool) {
	copied := strings.HasPrefix(label, "topology.kubernetes.io/")
	domains = map[string]string{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			continue
		}
		value, found := pod.Labels[label]
		if !found || !copied {
			return nil, false
		}
		domains[pod.Spec.NodeName] = value
	}
	return domains, true
}
