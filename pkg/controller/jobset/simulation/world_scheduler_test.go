// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// This file holds the scheduler of a world. It goes by what is written in pods: node selector, node affinity, affinity
// and anti-affinity among pods, requests and priority.

// schedule binds pods that wait, the most important ones first. It reports whether anything changed.
func (w *world) schedule() (busy bool) {
	var pending []*corev1.Pod
	for _, pod := range w.pods.Objects {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
			pending = append(pending, pod)
		}
	}
	slices.SortStableFunc(pending, func(a, b *corev1.Pod) int { return cmp.Compare(*b.Spec.Priority, *a.Spec.Priority) })
	for _, pod := range pending {
		if current, found := w.pods.Get(pod.Name); found && current.DeletionTimestamp == nil {
			busy = w.schedulePod(current) || busy
		}
	}
	return busy
}

// schedulePod does so for one of them.
func (w *world) schedulePod(pod *corev1.Pod) bool {
	node, excluded := w.nodeFor(pod, nobodyLeaves)
	if node != nil {
		w.bind(pod, node)
		return true
	}
	if nominated := pod.Status.NominatedNodeName; nominated != "" {
		if w.makesWay(nominated) {
			return false
		}
		w.changePod(pod, func(p *corev1.Pod) { p.Status.NominatedNodeName = "" })
		return true
	}
	busy := w.markUnschedulable(pod, excluded)
	if current, _ := w.pods.Get(pod.Name); ptr.Deref(pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority) != corev1.PreemptNever {
		busy = w.preempt(current) || busy
	}
	return busy
}

func nobodyLeaves(*corev1.Pod) bool { return false }

// markUnschedulable notes that there is no node for a pod.
func (w *world) markUnschedulable(pod *corev1.Pod, excluded bool) bool {
	message := "0 nodes are available: Insufficient cpu."
	if excluded {
		message = "0 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
	}
	since := w.Stored()
	if c := scheduled(pod); c != nil {
		if c.Message == message {
			return false
		}
		since = c.LastTransitionTime
	}
	w.Note("pod %s finds no node", pod.Name)
	w.changePod(pod, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message, LastTransitionTime: since,
		}}
	})
	return true
}

// scheduled returns the condition of a pod that there is no node for; nil of others.
func scheduled(pod *corev1.Pod) *corev1.PodCondition {
	if len(pod.Status.Conditions) == 0 || pod.Status.Conditions[0].Type != corev1.PodScheduled || pod.DeletionTimestamp != nil {
		return nil
	}
	return &pod.Status.Conditions[0]
}

func (w *world) bind(pod *corev1.Pod, node *corev1.Node) {
	w.Note("pod %s runs on %s in %s", pod.Name, node.Name, node.Labels[rackKey])
	w.changePod(pod, func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.NominatedNodeName, p.Status.Conditions = node.Name, "", nil
		p.Status.Phase = corev1.PodPending
	})
	w.Seen["pods bound"]++
	bound, _ := w.pods.Get(pod.Name)
	w.rules.bound(bound, node)
}

// nodeFor returns a node for a pod, if others leave, and whether the labels of any node exclude it.
func (w *world) nodeFor(pod *corev1.Pod, leaves func(*corev1.Pod) bool) (found *corev1.Node, excluded bool) {
	for _, node := range w.nodes.Objects {
		excluded = excluded || !selects(&pod.Spec, node)
		if w.fits(pod, node, leaves) {
			return node, excluded
		}
	}
	return nil, excluded
}

// fits reports whether a pod may run on a node, if others leave.
func (w *world) fits(pod *corev1.Pod, node *corev1.Node, leaves func(*corev1.Pod) bool) bool {
	return nodeReady(node) && !node.Spec.Unschedulable && selects(&pod.Spec, node) && w.free(node, pod, leaves) >= cpuOf(pod) && w.welcome(pod, node, leaves)
}

// selects reports whether a node has the labels that a pod wants.
func selects(spec *corev1.PodSpec, node *corev1.Node) bool {
	for key, value := range spec.NodeSelector {
		if node.Labels[key] != value {
			return false
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return slices.Contains(r.Values, node.Labels[r.Key]) == (r.Operator == corev1.NodeSelectorOpNotIn)
		})
	})
}

// free returns the processors that are left on a node for a pod, if others leave.
func (w *world) free(node *corev1.Node, pod *corev1.Pod, leaves func(*corev1.Pod) bool) int64 {
	left := int64(coresOfNode)
	for _, other := range w.pods.Objects {
		runs := other.Spec.NodeName == node.Name || other.Status.NominatedNodeName == node.Name && *other.Spec.Priority >= *pod.Spec.Priority
		if runs && other.Name != pod.Name && !hasEnded(other) && !leaves(other) {
			left -= cpuOf(other)
		}
	}
	return left
}

// welcome reports whether affinities and anti-affinities among pods allow a pod on a node.
func (w *world) welcome(pod *corev1.Pod, node *corev1.Node, leaves func(*corev1.Pod) bool) bool {
	wanted, unwanted := podTerms(pod)
	together, anybody := make([]bool, len(wanted)), make([]bool, len(wanted))
	for _, other := range w.pods.Objects {
		at, found := w.nodes.Get(other.Spec.NodeName)
		if !found || hasEnded(other) || leaves(other) || other.Name == pod.Name {
			continue
		}
		if _, its := podTerms(other); repels(unwanted, other, node, at) || repels(its, pod, node, at) {
			return false
		}
		for i, t := range wanted {
			if matchesLabels(t.LabelSelector, other.Labels) {
				anybody[i], together[i] = true, together[i] || node.Labels[t.TopologyKey] == at.Labels[t.TopologyKey]
			}
		}
	}
	for i := range wanted { // the first one of its kind may run anywhere
		if !together[i] && (anybody[i] || !matchesLabels(wanted[i].LabelSelector, pod.Labels)) {
			return false
		}
	}
	return true
}

// repels reports whether the terms of another pod keep a pod away, if the two would run on these nodes.
func repels(terms []corev1.PodAffinityTerm, pod *corev1.Pod, node, at *corev1.Node) bool {
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		return node.Labels[t.TopologyKey] == at.Labels[t.TopologyKey] && matchesLabels(t.LabelSelector, pod.Labels)
	})
}

func podTerms(pod *corev1.Pod) (affinity, anti []corev1.PodAffinityTerm) {
	a := pod.Spec.Affinity
	if a == nil {
		return nil, nil
	}
	if a.PodAffinity != nil {
		affinity = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if a.PodAntiAffinity != nil {
		anti = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return affinity, anti
}

func matchesLabels(selector *metav1.LabelSelector, labels map[string]string) bool {
	return !slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		value, found := labels[r.Key]
		switch r.Operator {
		case metav1.LabelSelectorOpExists:
			return !found
		case metav1.LabelSelectorOpNotIn:
			return found && slices.Contains(r.Values, value)
		}
		return !found || !slices.Contains(r.Values, value)
	})
}

// preempt makes pods of lower priority leave a node. It reports whether it did.
func (w *world) preempt(pod *corev1.Pod) bool {
	for _, node := range w.nodes.Objects {
		victim := func(other *corev1.Pod) bool {
			return other.Spec.NodeName == node.Name && *other.Spec.Priority < *pod.Spec.Priority && !hasEnded(other)
		}
		if !slices.ContainsFunc(w.pods.Objects, victim) || !w.fits(pod, node, victim) {
			continue
		}
		w.Note("pod %s preempts others on %s", pod.Name, node.Name)
		w.Seen["preemptions"]++
		for _, other := range slices.Clone(w.pods.Objects) {
			if victim(other) && other.DeletionTimestamp == nil {
				w.losePod(other, "")
			}
		}
		w.changePod(pod, func(p *corev1.Pod) { p.Status.NominatedNodeName = node.Name })
		return true
	}
	return false
}

// makesWay reports whether pods are still leaving a node.
func (w *world) makesWay(node string) bool {
	return slices.ContainsFunc(w.pods.Objects, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node && pod.DeletionTimestamp != nil })
}

// bootTime is how long a pod has to wait until the autoscaler adds a node for it.
const bootTime = 2 * time.Minute

// autoscale adds a node for a pod that waits: where it has to run, or in a new rack. It reports whether it did.
func (w *world) autoscale() bool {
	if !w.elastic() {
		return false
	}
	for _, pod := range w.pods.Objects {
		c := scheduled(pod)
		if c == nil || pod.Status.NominatedNodeName != "" || w.Since(c.LastTransitionTime.Time) < bootTime {
			continue
		}
		for rack := range w.racks + 3 { // of which one is in a new block
			if size := w.nodesOfRack(rack + 1); size < maxNodesOfRack && len(w.nodes.Objects) < 60 && w.helps(pod, rack+1) {
				w.racks = max(w.racks, rack+1)
				w.addNode(rack + 1)
				w.Seen["nodes added by the autoscaler"]++
				return true
			}
		}
	}
	return false
}

// helps reports whether a pod would run on a new node of a rack.
func (w *world) helps(pod *corev1.Pod, rack int) bool {
	node := w.newNode(rack)
	return selects(&pod.Spec, node) && w.welcome(pod, node, nobodyLeaves)
}
