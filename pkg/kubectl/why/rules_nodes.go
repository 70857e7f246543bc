// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Nodes that are lost, and the pods that stay on them.

// nodesLost looks at the nodes of pods in trouble.
func nodesLost(d *diagnosis) []Finding {
	byNode := map[string][]*corev1.Pod{}
	for _, pod := range d.Pods {
		if node, read := d.Nodes[pod.Spec.NodeName]; read && !snapshot.PodEnded(pod) && lost(node) {
			byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
		}
	}
	if len(byNode) == 0 {
		return nil
	}
	var facts []Fact
	all, names := 0, sortedKeys(byNode)
	for _, name := range names {
		pods := byNode[name]
		all += len(pods)
		if len(facts) < maxFacts {
			facts = append(facts, nodeFact(name, d.Nodes[name]), Fact{Object: object("pod", pods[0].Name), Text: fmt.Sprintf("one of %s on the node",
				count(len(pods), "unfinished pod"))})
		}
	}
	summary := fmt.Sprintf("the node %s is lost, with %s of the %s", names[0], count(all, "unfinished pod"), d.noun())
	if len(names) > 1 {
		summary = fmt.Sprintf("%d nodes are lost, with %s of the %s: %s", len(names), count(all, "unfinished pod"), d.noun(),
			some(names, maxFacts))
	}
	f := Finding{Cause: NodeLost, Summary: summary, Evidence: facts, Commands: []string{"kubectl describe node " + names[0]}}
	for _, name := range names {
		if fact := d.held(byNode[name]); fact != nil && len(f.Commands) <= 2*maxFacts {
			f.Evidence = append(f.Evidence, *fact)
			f.Commands = append(f.Commands, release(name)...)
		}
	}
	f.Commands = append(f.Commands, d.kubectl("get pods -l %s=%s -o wide --field-selector spec.nodeName=%s", d.kind().label, d.Name, names[0]))
	return []Finding{f}
}

// held returns the fact that pods on a lost node are terminating and stay, and with them the names of their Jobs; nil
// if none is, or if their end is near because the node is gone or is marked as out of service.
func (d *diagnosis) held(pods []*corev1.Pod) *Fact {
	node := d.Nodes[pods[0].Spec.NodeName]
	if node == nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }) {
		return nil
	}
	terminating := 0
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			terminating++
		}
	}
	if terminating == 0 {
		return nil
	}
	return &Fact{Object: object("node", pods[0].Spec.NodeName), Text: fmt.Sprintf(
		"%s terminating until the node is back, is deleted, or has the taint %s; what replaces them may have to wait",
		podsDo(terminating, "is", "are"), corev1.TaintNodeOutOfService)}
}

// release returns the commands by which an administrator lets go of the pods on a lost node.
func release(node string) []string {
	return []string{
		fmt.Sprintf("kubectl taint nodes %s %s=nodeshutdown:NoExecute  # if it is powered off and will be back", node,
			corev1.TaintNodeOutOfService),
		fmt.Sprintf("kubectl delete node %s  # if it is powered off and will not be back", node),
	}
}

func lost(node *corev1.Node) bool {
	if node == nil {
		return true
	}
	c := nodeReady(node)
	return c != nil && c.Status != corev1.ConditionTrue
}

func nodeFact(name string, node *corev1.Node) Fact {
	if node == nil {
		return Fact{Object: object("node", name), Text: "no longer exists"}
	}
	c := nodeReady(node)
	return Fact{Object: object("node", name), Text: fmt.Sprintf("condition Ready %s: %s, %s", c.Status, c.Reason, oneLine(c.Message)),
		Time: at(c.LastTransitionTime.Time)}
}

// asksForNodes returns whether the pod may run on some nodes only, by their labels or names.
func asksForNodes(pod *corev1.Pod) bool {
	return len(pod.Spec.NodeSelector) > 0 || requiredTerms(pod) != nil
}

func requiredTerms(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// fitsNode returns whether a node has what the pod asks for in its node selector and its required node affinity.
func fitsNode(pod *corev1.Pod, node *corev1.Node) bool {
	fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	return fits && err == nil
}

// tolerated returns whether a pod may run on a node in spite of the taint.
func tolerated(pod *corev1.Pod, taint *corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Background(), taint, true)
	})
}

func taintText(t *corev1.Taint) string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return strconv.Quote(text + ":" + string(t.Effect))
}
