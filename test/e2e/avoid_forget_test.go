// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// forgetVariable has TestAvoidedNodeIsTheOnlyRoom wait for the minutes after which avoided nodes are forgotten.
const forgetVariable = "JOBSET_E2E_FORGET"

// selective is a set of one Job of two pods on nodes with a label.
const selective = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
  annotations: {jobset-apiserver.io/avoid-failed-nodes: 1h}
spec:
  failurePolicy: {maxRestarts: 2}
  replicatedJobs:
  - name: w
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
          spec:
            restartPolicy: Never
            nodeSelector: {example.com/%s: only}
            containers:
            - {name: main, image: train, resources: {requests: {cpu: 1m}}}
`

// TestAvoidedNodeIsTheOnlyRoom has an attempt fail on the only node that its pods can use. Those of the next attempt
// wait for another node rather than run there, for some minutes; then the failure is forgotten.
func TestAvoidedNodeIsTheOnlyRoom(t *testing.T) {
	tier.OnRequest(t, "adds nodes and taints that other tests see")
	t.Parallel()
	k := newKubectl(t)
	nodes := strings.Fields(k.ok("get", "nodes", "-l", "jobset-apiserver.io/rack", "-o", "jsonpath={.items[*].metadata.name}"))
	failed, other := nodes[0], nodes[1]
	label := func(node string) {
		k.ok("label", "node", node, "example.com/"+k.namespace+"=only")
		t.Cleanup(func() { k.run("", "label", "node", node, "example.com/"+k.namespace+"-") })
	}
	label(failed)
	k.okIn(fmt.Sprintf(selective, k.namespace), "create", "-f", "-")
	k.eventually(func() string { return k.running(2) })
	pod := strings.Fields(k.ok("get", "pods", "-o", "jsonpath={.items[*].metadata.name}"))[0]
	k.ok("annotate", "pod", pod, "--overwrite", "jobset-apiserver.io/kwok-exit-code=137", "jobset-apiserver.io/kwok-run-seconds=0", "jobset-apiserver.io/kwok-outcome=failed")
	start := time.Now()
	k.eventually(func() string {
		const path = `{range .items[*]}{.status.conditions[?(@.type=="PodScheduled")].reason} {.status.conditions[?(@.type=="PodScheduled")].message}{"\n"}{end}`
		got := k.ok("get", "pods", "-l", "jobset.sigs.k8s.io/restart-attempt=1", "-o", "jsonpath="+path)
		if strings.Count(got, "Unschedulable") != 2 || strings.Count(got, "node affinity") != 2 {
			return fmt.Sprintf("pods of the second attempt: %q", got)
		}
		return k.hasNot("jobset/train", "{.status.attempts[-1:].avoidedNodes[*].name}", failed)
	})
	if os.Getenv(forgetVariable) == "" {
		label(other)
		k.eventually(func() string { return k.running(2) })
		if on := k.podsByNode(); on[other] != 2 {
			k.Errorf("pods run on %v, want all of them on %s", on, other)
		}
		return
	}
	k.eventually(func() string {
		if events := k.ok("get", "events", "--field-selector=reason=AvoidedNodesForgotten", "-o", "jsonpath={.items[*].message}"); !strings.Contains(events, "node "+failed) {
			return fmt.Sprintf("events: %q", events)
		}
		return k.running(2)
	})
	k.Logf("all run on the avoided node after %s", time.Since(start).Round(time.Second))
	if on := k.podsByNode(); on[failed] != 2 {
		k.Errorf("pods run on %v, want all of them on %s", on, failed)
	}
	if got := k.field("jobset/train", "{.status.restarts}"); got != "1" {
		k.Errorf("restarts: %s, want 1", got)
	}
}
