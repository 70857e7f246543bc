// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// avoiding is a set of two Jobs with more pods than the cluster has nodes, so that the scheduler puts some on each.
const avoiding = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
  annotations: {jobset-apiserver.io/avoid-failed-nodes: %q}
spec:
  failurePolicy: {maxRestarts: 2}
  replicatedJobs:
  - name: w
    replicas: 2
    template:
      spec:
        parallelism: 30
        completions: 30
        backoffLimit: 0
        template:
          metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
          spec:
            restartPolicy: Never
            affinity:
              nodeAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                  nodeSelectorTerms:
                  - matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]
                  - matchExpressions: [{key: kubernetes.io/os, operator: Exists}]
            containers:
            - {name: main, image: train, resources: {requests: {cpu: 1m}}}
`

// TestAvoidFailedNodes kills a pod by a signal: after the restart no pod of the set runs on its node, which is shown,
// and whose failure is remembered for another restart.
func TestAvoidFailedNodes(t *testing.T) {
	tier.OnRequest(t, "adds nodes and taints that other tests see")
	t.Parallel()
	k := newKubectl(t)
	k.refused(fmt.Sprintf(avoiding, "1 hour"), []string{"create", "-f", "-"},
		"metadata.annotations[jobset-apiserver.io/avoid-failed-nodes]", `must be a duration from 0s, for not at all, to 720h, such as "1h" or "90m"`)
	k.okIn(fmt.Sprintf(avoiding, "1h"), "create", "-f", "-")
	k.eventually(func() string { return k.running(60) })
	pod, node, _ := strings.Cut(strings.Fields(k.ok("get", "pods", "-o", `jsonpath={range .items[*]}{.metadata.name}={.spec.nodeName} {end}`))[0], "=")
	k.ok("annotate", "pod", pod, "--overwrite", "jobset-apiserver.io/kwok-exit-code=137", "jobset-apiserver.io/kwok-run-seconds=0", "jobset-apiserver.io/kwok-outcome=failed")
	k.keepsOff(2, node)

	shown := "keep off " + node + " until "
	why := k.pluginOK("why", "train")
	timeline := k.pluginOK("timeline", "train")
	if !strings.Contains(why, shown) || !strings.Contains(timeline, "kept off: "+node+" until ") || !strings.Contains(timeline, "attempt 1: container main was ended by signal 9") {
		t.Errorf("node %s is not shown:\n%s\n%s", node, why, timeline)
	}
	if events := k.ok("get", "events", "--field-selector=reason=NodesAvoided", "-o", "jsonpath={.items[*].message}"); !strings.Contains(events, "node "+node) {
		t.Errorf("events: %q", events)
	}
	k.pluginOK("restart", "train")
	k.keepsOff(3, node)
}

// running returns what is wrong if not so many pods run.
func (k *kubectl) running(want int) string {
	k.Helper()
	n := 0
	for _, pods := range k.podsByNode() {
		n += pods
	}
	if n != want {
		return fmt.Sprintf("%d of %d pods run", n, want)
	}
	return ""
}

// podsByNode counts the pods that run, by node.
func (k *kubectl) podsByNode() map[string]int {
	k.Helper()
	nodes := map[string]int{}
	for _, node := range strings.Fields(k.ok("get", "pods", "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].spec.nodeName}")) {
		nodes[node]++
	}
	return nodes
}

// keepsOff waits until an attempt runs, and looks that none of its pods is on the node.
func (k *kubectl) keepsOff(attempt int, node string) {
	k.Helper()
	k.eventually(func() string {
		const path = `{.status.attempts[-1:].number} {.status.attempts[-1:].avoidedNodes[*].name}`
		if problem := k.hasNot("jobset/train", path, fmt.Sprintf("%d %s", attempt, node)); problem != "" {
			return problem
		}
		if k.field("jobset/train", "{.status.attempts[-1:].readyTime}") == "" {
			return "the attempt is not ready"
		}
		return k.running(60)
	})
	if on := k.podsByNode(); on[node] > 0 || len(on) < 10 {
		k.Errorf("pods by node in attempt %d, which avoids %s: %v", attempt, node, on)
	}
}
