// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestShortageMessage(t *testing.T) {
	taint := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, test := range map[string]struct {
		world *world
		want  string
	}{
		"no label": {new(world).set("a", 1, 1), `1 job of replicatedJob "w", with 1 pod, needs a domain of "rack": no node has that label`},
		"taken": {
			new(world).racks(1, 1, 1).has("b/0", "r0", 0).has("b/1", "r1", 0).has("c/0", "r2", 0).set("a", 2, 3),
			`2 jobs of replicatedJob "w", with 3 pods, each need a domain of "rack": of 3 domains, 3 are taken by jobs (b: 2, c: 1)`,
		},
		"many takers": {
			new(world).racks(1, 1, 1, 1, 1).has("b/0", "r0", 0).has("c/0", "r1", 0).has("d/0", "r2", 0).has("e/0", "r3", 0).has("f/0", "r4", 0).set("a", 1, 1),
			`1 job of replicatedJob "w", with 1 pod, needs a domain of "rack": of 5 domains, 5 are taken by jobs (b: 1, c: 1, d: 1, 2 other sets)`,
		},
		"room": {
			new(world).racks(1, 3, 9).has("b/0", "r2", 0).set("a", 1, 4, shaped(shapeOf(4))),
			`1 job of replicatedJob "w", with 4 pods, needs a domain of "rack": of 3 domains, 1 is taken by jobs (b: 1), 2 lack room (cpu: 2); ` +
				`"r1" comes closest, with room for 3 of 4 pods (4 cpu missing)`,
		},
		"spread": {
			new(world).node("x", "rack=r0", 6).node("y", "rack=r0", 6).set("a", 1, 3),
			`1 job of replicatedJob "w", with 3 pods, needs a domain of "rack": of 1 domain, 1 lacks room (cpu: 1); "r0" comes closest, with room for 2 of 3 pods (4 cpu missing)`,
		},
		"two resources": {
			new(world).node("x", "rack=r0", 4).node("y", "rack=r0", 1, func(n *corev1.Node) { n.Status.Allocatable["memory"] = list("m", "9Gi")["m"] }).
				set("a", 1, 1, shaped(shapeOf(4, func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests["memory"] = list("m", "1Gi")["m"] }))),
			`1 job of replicatedJob "w", with 1 pod, needs a domain of "rack": of 1 domain, 1 lacks room (free resources spread over nodes: 1); ` +
				`"r0" comes closest, with room for 0 of 1 pod`,
		},
		"nodes": {
			new(world).node("x", "rack=r0", 4, taint).node("y", "rack=r1", 4, cordoned).node("z", "rack=r2", 4, cordoned).set("a", 1, 1),
			`1 job of replicatedJob "w", with 1 pod, needs a domain of "rack": of 3 domains, 3 have no node for the pods (taint node.kubernetes.io/unschedulable: 2, taint gpu: 1)`,
		},
		"different nodes": {
			new(world).node("x", "rack=r0", 4, taint).node("y", "rack=r0", 4, cordoned).set("a", 1, 1),
			`1 job of replicatedJob "w", with 1 pod, needs a domain of "rack": of 1 domain, 1 has no node for the pods (different reasons: 1)`,
		},
		"labels": {
			new(world).racks(1).set("a", 1, 1, shaped(shapeOf(4, func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "a"} }))),
			`1 job of replicatedJob "w", with 1 pod, needs a domain of "rack": of 1 domain, 1 has no node for the pods (node selector or affinity: 1)`,
		},
		"several replicatedJobs": {
			new(world).racks(1, 1).set("a", 2, 1, second(false)),
			`2 jobs of replicatedJob "v", with 1 pod, each need a domain of "rack", as do 2 jobs of other replicatedJobs: of 2 domains, 2 are free and have room`,
		},
		"what only the scheduler knows": {
			new(world).racks(1).has("b/0", "r0", 0).set("a", 1, 1, shaped(shapeOf(4, func(s *corev1.PodSpec) { s.SchedulingGates = make([]corev1.PodSchedulingGate, 1) }))),
			`1 job of replicatedJob "w", with 1 pod, needs a domain of "rack": of 1 domain, 1 is taken by jobs (b: 1); not considered: scheduling gates`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Place(&test.world.Cluster, test.world.present, test.world.requests, WhenFullWait)[0].Shortage.Message()
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestShortageMessageIsBounded has names as long as the API allows.
func TestShortageMessageIsBounded(t *testing.T) {
	w := new(world)
	long := strings.Repeat("x", 316)
	for _, rack := range []string{"r0", "r1", "r2"} {
		w.node(rack, "rack="+rack, 4).has(rack+long+"/0", rack, 0)
	}
	got := Place(&w.Cluster, w.present, w.set("a", 1, 1).requests, WhenFullWait)[0].Shortage.Message()
	if len(got) > maxMessage || !strings.HasSuffix(got, "...") {
		t.Errorf("the message has %d bytes: %s", len(got), got)
	}
	if (*Shortage)(nil).Message() != "" {
		t.Error("there is a message without a shortage")
	}
}
