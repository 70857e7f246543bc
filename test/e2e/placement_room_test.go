// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestPlacementInScarceRoom has the scheduler, an autoscaler and others compete with exclusive placement for nodes, in
// one cluster. Each test has nodes of its own, with a taint and a label that no other uses.
func TestPlacementInScarceRoom(t *testing.T) {
	tier.OnRequest(t, "needs a cluster with nodes of its own")
	t.Parallel() // its cluster is its own
	c := startCluster(t, "room", "CLUSTER_NODES=0", "CLUSTER_CONTROLLER_ARGS=--placement-move-after=30s")
	for name, test := range map[string]func(*testing.T, *cluster){
		"autoscaler": testAutoscaler, "move": testMove, "upstream": testUpstreamPods, "priority": testPriority,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// testMove fills the nodes of a domain after a Job was placed there, and before its pods start: it moves, and no restart is counted.
func testMove(t *testing.T, c *cluster) {
	k, nodes := newOwnNodes(t, c)
	nodes.addAll(2, "left", "right")
	before := nodes.placed("train", nodes.set("train", 1, ", schedulingGates: [{name: example.com/later}]"))
	for node, domain := range nodes.domainsByNode() {
		if slices.Contains(before, domain) {
			k.okIn(fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: fills-%s}, spec: {nodeName: %[1]s, %s}}", node, nodes.pod()), "create", "-f", "-")
		}
	}
	nodes.openGates()
	k.eventually(func() string {
		return k.hasNot("jobset/train", "{.status.placement.replicatedJobs[0].jobs[0].moves.left[0]}", before[0])
	})
	k.eventually(func() string {
		nodes.openGates()
		return nodes.alone("train", 1)
	})
	after := k.domains("train")
	if restarts := k.field("jobset/train", "{.status.restarts}"); slices.Equal(before, after) || restarts != "0" {
		k.Errorf("domains %v, and %v after a move; restarts: %s", before, after, restarts)
	}
	k.eventually(func() string {
		const said = `job "train-w-0" leaves %s %q for %q: its pods got no node for `
		events := k.ok("get", "events", "--field-selector=reason=JobMoved", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(events, fmt.Sprintf(said, nodes.key(), before[0], after[0])) || !strings.Contains(events, "Insufficient cpu") {
			return fmt.Sprintf("events: %q", events)
		}
		return ""
	})
	k.Log(k.ok("get", "events", "--field-selector=reason=JobMoved", "-o", "jsonpath={.items[*].message}"))
}

// placed creates a set of one Job, and returns its domain once its pods exist. The controller may have seen too few
// nodes yet, and left the domain to the scheduler; then the set is created once more.
func (n *ownNodes) placed(name, manifest string) []string {
	n.Helper()
	for range 20 {
		n.okIn(manifest, "create", "-f", "-")
		n.eventually(func() string {
			if got := len(n.pods(name)); got != 2 {
				return fmt.Sprintf("%d pods exist", got)
			}
			return ""
		})
		if domains := n.domains(name); len(domains) == 1 {
			return domains
		}
		n.delete("jobset", name, "--cascade=foreground")
	}
	n.Fatal("the controller chooses no domain, although nodes are free")
	return nil
}

// openGates lets the pods be scheduled.
func (n *ownNodes) openGates() {
	n.Helper()
	for _, pod := range n.pods("train") {
		if len(pod.Spec.SchedulingGates) > 0 {
			// The pod may be gone by now.
			n.run("", "patch", "pod", pod.Name, "--type=json", "-p", `[{"op": "remove", "path": "/spec/schedulingGates"}]`)
		}
	}
}

// upstreamPods are the pods of a Job with exclusive placement as upstream's webhooks leave them: the first has
// affinity, and the second goes to the domain of the first.
func (n *ownNodes) upstreamPods(index int, domain string) string {
	const key = "0123456789abcdef0123456789abcdef01234567"
	more := fmt.Sprintf(", nodeSelector: {%s: %q}", n.key(), domain)
	if index == 0 {
		term := func(expressions string) string {
			return fmt.Sprintf("requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, namespaceSelector: {}, labelSelector: {matchExpressions: [%s]}}]", n.key(), expressions)
		}
		more = fmt.Sprintf(", affinity: {podAffinity: {%s}, podAntiAffinity: {%s}}",
			term("{key: jobset.sigs.k8s.io/job-key, operator: In, values: ["+key+"]}"),
			term("{key: jobset.sigs.k8s.io/job-key, operator: Exists}, {key: jobset.sigs.k8s.io/job-key, operator: NotIn, values: ["+key+"]}, "+
				"{key: jobset.sigs.k8s.io/priority, operator: In, values: ['0']}"))
	}
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: old-w-0-%d, annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: %s, jobset.sigs.k8s.io/jobset-name: old}, "+
		"labels: {jobset.sigs.k8s.io/jobset-name: old, jobset.sigs.k8s.io/jobset-uid: 7fa64d14-6c9a-4d5c-8f5b-0d9c4c2f9a51, jobset.sigs.k8s.io/job-key: %s, jobset.sigs.k8s.io/priority: '0', "+
		"jobset.sigs.k8s.io/replicatedjob-name: w, jobset.sigs.k8s.io/job-index: '0', batch.kubernetes.io/job-name: old-w-0}}, spec: {%s%s}}", index, n.key(), key, n.pod(), more)
}

// testUpstreamPods has pods that upstream's webhooks have placed in a domain: Jobs keep off it while they run there,
// and pods of upstream's that come later off the domains of Jobs.
func testUpstreamPods(t *testing.T, c *cluster) {
	k, nodes := newOwnNodes(t, c)
	nodes.addAll(3, "left", "right")
	where := func() string { return nodes.domainsByNode()[k.field("pod/old-w-0-0", "{.spec.nodeName}")] }
	k.okIn(nodes.upstreamPods(0, ""), "create", "-f", "-")
	k.wait("--for=condition=Ready", "pod/old-w-0-0")
	taken := where()
	k.okIn(nodes.upstreamPods(1, taken), "create", "-f", "-")
	k.wait("--for=condition=Ready", "pod/old-w-0-1")

	k.okIn(nodes.set("first", 1, ""), "create", "-f", "-")
	k.eventually(func() string { return nodes.alone("first", 1) })
	if got := k.domains("first"); slices.Contains(got, taken) {
		k.Errorf("a Job is in %v, where pods are that upstream's webhooks have placed", got)
	}
	k.okIn(nodes.set("second", 1, ""), "create", "-f", "-")
	k.eventually(func() string {
		return nodes.waits("second", 2)
	})
	k.eventually(func() string {
		events := k.ok("get", "events", "--field-selector=reason=NoDomain", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(events, "of 2 domains, 2 are taken by jobs") || !strings.Contains(events, k.namespace+"/old: 1") {
			return fmt.Sprintf("events: %q", events)
		}
		return ""
	})
	k.ok("delete", "pod", "old-w-0-0", "old-w-0-1")
	k.eventually(func() string { return nodes.alone("second", 1) })

	k.okIn(nodes.upstreamPods(0, ""), "create", "-f", "-")
	k.eventually(func() string { return nodes.waits("old", 1) })
	k.ok("delete", "jobset", "first")
	k.wait("--for=condition=Ready", "pod/old-w-0-0")
	if now := where(); slices.Contains(k.domains("second"), now) {
		k.Errorf("a pod that upstream's webhooks have changed is in %s, the domain of a Job", now)
	}
}

// waits returns what is wrong if the scheduler does not refuse so many pods of a set.
func (n *ownNodes) waits(set string, want int) string {
	n.Helper()
	pods := n.pods(set)
	refused := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !unschedulable(&pod) })
	if len(refused) != want || len(pods) != want {
		return fmt.Sprintf("%d of %d pods of %s wait for a node, want all of %d", len(refused), len(pods), set, want)
	}
	return ""
}

// testPriority has a set of higher priority take a domain of another set when all are taken, by preemption, and the
// other set return when it is gone.
func testPriority(t *testing.T, c *cluster) {
	k, nodes := newOwnNodes(t, c)
	nodes.addAll(2, "left", "right")
	k.okIn(fmt.Sprintf("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: 1000}", k.namespace), "create", "-f", "-")
	t.Cleanup(func() { k.run("", "delete", "priorityclass", k.namespace) })
	k.okIn(nodes.set("low", 2, ""), "create", "-f", "-")
	k.eventually(func() string { return nodes.alone("low", 2) })

	k.okIn(nodes.set("high", 1, ", priorityClassName: "+k.namespace), "create", "-f", "-")
	k.eventually(func() string { return nodes.alone("high", 1) })
	if got := k.field("jobset/high", "{.status.restarts}"); got != "0" {
		k.Errorf("the set of higher priority has restarted %s times", got)
	}
	k.eventually(func() string {
		if got := k.field("jobset/low", "{.status.restarts}"); got == "0" || got == "" {
			return "the set of lower priority has not restarted"
		}
		return nodes.alone("high", 1)
	})
	k.ok("delete", "jobset", "high")
	k.eventually(func() string { return nodes.alone("low", 2) })
}
