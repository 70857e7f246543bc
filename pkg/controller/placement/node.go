// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
)

// NewNode reduces a node, and keeps nothing of it in memory.
func NewNode(node *corev1.Node) Node {
	out := Node{Name: NameOf(node.Name), Allocatable: NewAmounts(node.Status.Allocatable), Labels: make([]Label, 0, len(node.Labels))}
	for key, value := range node.Labels {
		out.Labels = append(out.Labels, Label{NameOf(key), NameOf(value)})
	}
	slices.SortFunc(out.Labels, func(a, b Label) int { return compareNames(a.Key, b.Key) })
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; t.Effect != corev1.TaintEffectPreferNoSchedule {
			out.addTaint(t.Key, t.Value, t.Effect)
		}
	}
	if node.Spec.Unschedulable {
		out.addTaint(corev1.TaintNodeUnschedulable, "", corev1.TaintEffectNoSchedule)
	}
	if notReady(node) {
		out.addTaint(corev1.TaintNodeNotReady, "", corev1.TaintEffectNoSchedule)
	}
	return out
}

// addTaint adds a taint once. The taints that stand for the state of a node come a moment after that state.
func (n *Node) addTaint(key, value string, effect corev1.TaintEffect) {
	taint := Taint{NameOf(key), NameOf(value), NameOf(string(effect))}
	if !slices.Contains(n.Taints, taint) {
		n.Taints = append(n.Taints, taint)
	}
}

// notReady returns whether a node says that it is not ready. One that says nothing is new, and has a taint.
func notReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}

// In returns whether the node is in a domain.
func (n *Node) In(topology, domain Name) bool {
	value, found := n.label(topology)
	return found && value == domain
}

func (n *Node) label(key Name) (Name, bool) {
	for i := range n.Labels {
		if n.Labels[i].Key == key {
			return n.Labels[i].Value, true
		}
	}
	return Name{}, false
}

// NewPod reduces a pod, and keeps nothing of it in memory. The set is the key of its JobSet and the job its job key;
// both are empty for other pods. It returns false for a pod that takes no room: one that has ended, or that has no node
// and none nominated.
func NewPod(pod *corev1.Pod, set, job string) (Pod, bool) {
	node := pod.Spec.NodeName
	if node == "" {
		node = pod.Status.NominatedNodeName
	}
	if node == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return Pod{}, false
	}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true})
	out := Pod{
		Node: NameOf(node), Owner: NameOf(set), Job: NameOf(job), Requests: podAmounts(requests), Priority: schedulinghelpers.PodPriority(pod),
	}
	if ref := metav1.GetControllerOf(pod); set == "" && ref != nil && ref.Kind == "DaemonSet" {
		out.Owner = DaemonOwner(pod.Namespace, ref.Name)
	}
	return out, true
}

// DaemonOwner returns the owner of the pods of a DaemonSet.
func DaemonOwner(namespace, name string) Name {
	return NameOf("DaemonSet " + namespace + "/" + name)
}

// podAmounts are the requests of a pod and the pod itself, as nodes have room for so many pods.
func podAmounts(requests corev1.ResourceList) Amounts {
	requests[corev1.ResourcePods] = onePod
	return NewAmounts(requests)
}
