// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// ownNodes makes nodes that only pods with ownPlace use, and returns their names.
func (e *lwsEnv) ownNodes(n int) (names []string) {
	e.Helper()
	nodes := shared.Kube.CoreV1().Nodes()
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("40"),
	}
	for i := range n {
		node, err := nodes.Create(e.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", e.namespace, i), Labels: map[string]string{"example.com/only": e.namespace},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "example.com/only-for", Value: e.namespace, Effect: corev1.TaintEffectNoSchedule}}},
		}, metav1.CreateOptions{})
		if err != nil {
			e.Fatal(err)
		}
		e.Cleanup(func() { e.run("", "delete", "node", node.Name, "--ignore-not-found") })
		names = append(names, node.Name)
		e.eventually(func() string { // kwok writes the status too
			node, err := nodes.Get(e.Context(), node.Name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			node.Status.Allocatable, node.Status.Capacity = room, room
			if _, err := nodes.UpdateStatus(e.Context(), node, metav1.UpdateOptions{}); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	return names
}

// ownPlace makes pods run on the nodes of the test only.
func (e *lwsEnv) ownPlace(p *corev1.PodSpec) {
	p.NodeSelector = map[string]string{"example.com/only": e.namespace}
	p.Tolerations = []corev1.Toleration{{Key: "example.com/only-for", Operator: corev1.TolerationOpExists}}
}

// mixed returns which group has pods of two revisions, if any: a worker belongs to the leader that controls its StatefulSet.
func (e *lwsEnv) mixed(name string) string {
	e.Helper()
	// Read before the pods, so that each StatefulSet is at most as new as they are.
	sets, err := shared.Kube.AppsV1().StatefulSets(e.namespace).List(e.Context(), metav1.ListOptions{})
	if err != nil {
		e.Fatal(err)
	}
	leaders := map[types.UID]types.UID{}
	for i := range sets.Items {
		if owner := metav1.GetControllerOfNoCopy(&sets.Items[i]); owner != nil {
			leaders[sets.Items[i].UID] = owner.UID
		}
	}
	pods := e.podsOf(name)
	byUID := map[types.UID]string{}
	for _, pod := range pods {
		byUID[pod.UID] = pod.Labels[leaderworkersetv1.RevisionKey]
	}
	for podName, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil {
			continue
		}
		if leader, known := byUID[leaders[owner.UID]]; known && leader != pod.Labels[leaderworkersetv1.RevisionKey] {
			return fmt.Sprintf("pod %s is of revision %s, and its leader of %s", podName, pod.Labels[leaderworkersetv1.RevisionKey], leader)
		}
	}
	return ""
}

// TestNodesAreLostDuringRollout takes two of four nodes away while ten groups are updated, two at a time. One is
// deleted with its pods, and the other evicts them.
func TestNodesAreLostDuringRollout(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	const groups, size = 10, 2
	e := newLWSEnv(t)
	nodes := e.ownNodes(4)
	e.create(configure(groupsOf("serve", groups, size), func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
		s.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{MaxUnavailable: ptr.To(intstr.FromInt32(2))}
		e.ownPlace(&s.LeaderWorkerTemplate.WorkerTemplate.Spec)
	}))
	e.awaitAvailable("serve", groups, groups*size)
	partition := func(n int32) func(*leaderWorkerSet) {
		return func(set *leaderWorkerSet) { set.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To(n) }
	}
	e.update("serve", func(set *leaderWorkerSet) { newImage("example.com/main:2")(set); partition(6)(set) })
	e.eventually(func() string {
		if n := e.getSet("serve").Status.UpdatedReplicas; n != groups-6 {
			return fmt.Sprintf("%d groups are updated", n)
		}
		return e.mixed("serve")
	})
	lost := 0
	for _, pod := range e.podsOf("serve") {
		if pod.Spec.NodeName == nodes[0] || pod.Spec.NodeName == nodes[1] {
			lost++
		}
	}
	if lost == 0 {
		t.Fatalf("no pod is on %s or %s", nodes[0], nodes[1])
	}
	e.update("serve", partition(0))
	e.run("", "delete", "node", nodes[0], "--wait=false")
	e.run("", "delete", "pods", "-n", e.namespace, "--field-selector=spec.nodeName="+nodes[0], "--force", "--grace-period=0", "--wait=false")
	e.run("", "taint", "node", nodes[1], "example.com/lost=true:NoExecute")

	e.eventually(func() string {
		if mixed := e.mixed("serve"); mixed != "" {
			t.Fatal(mixed)
		}
		if s := e.getSet("serve").Status; s.UpdatedReplicas != groups || s.ReadyReplicas != groups {
			return fmt.Sprintf("%d of %d groups are updated and %d ready", s.UpdatedReplicas, groups, s.ReadyReplicas)
		}
		return ""
	})
	e.awaitAvailable("serve", groups, groups*size)
	for name, pod := range e.podsOf("serve") {
		if pod.Spec.Containers[0].Image != "example.com/main:2" || pod.Spec.NodeName == nodes[0] || pod.Spec.NodeName == nodes[1] {
			t.Errorf("pod %s runs %s on %s", name, pod.Spec.Containers[0].Image, pod.Spec.NodeName)
		}
	}
}
