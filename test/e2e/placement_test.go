// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// exclusive is a set of Jobs of two pods that run until they are stopped.
const exclusive = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
  annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: jobset-apiserver.io/rack}
spec:
  failurePolicy: {maxRestarts: 1}
  replicatedJobs:
  - name: w
    replicas: %d
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
          spec:
            restartPolicy: Never
            containers:
            - {name: main, image: train, resources: {requests: {cpu: 100m}}}
`

// TestExclusivePlacement runs three sets on five racks: the first gets three of them, the second has to wait for three
// until the first is suspended, and the first then waits for the second. A restart changes no domain.
func TestExclusivePlacement(t *testing.T) {
	tier.OnRequest(t, "adds nodes that other tests see")
	t.Parallel() // its cluster is its own
	c := startCluster(t, "place", "CLUSTER_CONTROLLER_ARGS=--placement-when-full=wait")
	k := newKubectlFor(t, c)
	if created := k.okIn(fmt.Sprintf(exclusive, "first", 3), "create", "-f", "-"); strings.Contains(created, "Warning") {
		t.Errorf("warnings: %s", created)
	}
	k.eventually(func() string { return k.alone("first", 3) })
	before := k.domains("first")

	k.okIn(fmt.Sprintf(exclusive, "second", 3), "create", "-f", "-")
	k.placementShows("second", "True", "NoDomain", "of 5 domains, 2 are free", k.namespace+"/first: 3")
	if got := k.ok("get", "jobs", "-o", "name", "-l", "jobset.sigs.k8s.io/jobset-name=second"); got != "" {
		t.Errorf("a set that waits has Jobs: %s", got)
	}
	k.okIn(fmt.Sprintf(exclusive, "third", 2), "create", "-f", "-")
	k.eventually(func() string { return k.alone("third", 2) })
	// All racks have Jobs: the scheduler keeps pods out that come later, though they do not ask for a rack of their own.
	plain := strings.Replace(exclusive, "jobset-apiserver.io/rack}", `""}`, 1)
	k.okIn(fmt.Sprintf(plain, "plain", 1), "create", "-f", "-")
	k.eventually(func() string {
		const path = `{range .items[*]}{.spec.nodeName}{.status.conditions[?(@.type=="PodScheduled")].reason} {.status.conditions[?(@.type=="PodScheduled")].message}{"\n"}{end}`
		got := k.ok("get", "pods", "-l", "jobset.sigs.k8s.io/jobset-name=plain", "-o", "jsonpath="+path)
		if strings.Count(got, "Unschedulable") != 2 || !strings.Contains(got, "anti-affinity") {
			return "pods of a set that does not ask for racks: " + got
		}
		return ""
	})
	k.ok("delete", "jobset", "plain")

	k.ok("annotate", "pod", "-l", "jobset.sigs.k8s.io/jobset-name=first,jobset.sigs.k8s.io/job-index=1", "jobset-apiserver.io/kwok-outcome=failed", "--overwrite")
	k.eventually(func() string {
		return k.hasNot("jobset/first", "{.status.restarts} {.status.placement.restarts}", "1 1")
	})
	k.eventually(func() string { return k.alone("first", 3) })
	if after := k.domains("first"); !slices.Equal(before, after) {
		t.Errorf("domains before and after a restart: %v, %v", before, after)
	}

	k.ok("patch", "jobset", "first", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	k.eventually(func() string { return k.alone("second", 3) })
	k.placementShows("second", "False", "Placed")
	if got := k.domains("first"); len(got) > 0 {
		t.Errorf("a suspended set holds %v", got)
	}
	k.ok("patch", "jobset", "first", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	k.placementShows("first", "True", "NoDomain", k.namespace+"/second: 3")
	k.ok("delete", "jobset", "third")
	k.placementShows("first", "True", "NoDomain", k.namespace+"/second: 3")
	if got := k.ok("get", "pods", "-o", "name", "-l", "jobset.sigs.k8s.io/jobset-name=first"); got != "" {
		t.Errorf("a set that waits has pods: %s", got)
	}
	k.okIn(sixthRack, "create", "-f", "-")
	k.eventually(func() string { return k.alone("first", 3) })
	k.ok("delete", "jobset", "first", "second")
	k.losesANode()
}

// sixthRack is a node in a rack of its own.
const sixthRack = `{apiVersion: v1, kind: Node, metadata: {name: another, labels: {type: kwok, jobset-apiserver.io/rack: another}, annotations: {kwok.x-k8s.io/node: fake}},
  status: {allocatable: {cpu: 8, memory: 8Gi, pods: 100}, capacity: {cpu: 8, memory: 8Gi, pods: 100}}}`

// losesANode has a node not be ready any more on which a pod of a Job runs that needs all nodes of a rack. The pod is
// evicted, and the set restarts in another rack.
func (k *kubectl) losesANode() {
	k.Helper()
	large := strings.NewReplacer("parallelism: 2", "parallelism: 4", "completions: 2", "completions: 4", "cpu: 100m", "cpu: 40",
		"containers:", "tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 1}]\n            containers:").Replace(exclusive)
	k.okIn(fmt.Sprintf(large, "large", 1), "create", "-f", "-")
	const all = `{range .items[?(@.status.phase=="Running")]}{.spec.nodeName} {end}`
	running := func(attempt string) []string {
		return strings.Fields(k.ok("get", "pods", "-o", "jsonpath="+all, "-l", "jobset.sigs.k8s.io/jobset-name=large,jobset.sigs.k8s.io/restart-attempt="+attempt))
	}
	runs := func(attempt string) func() string {
		return func() string {
			if got := running(attempt); len(got) != 4 {
				return fmt.Sprintf("pods of attempt %s run on %v", attempt, got)
			}
			return ""
		}
	}
	k.eventually(runs("0"))
	before, lost := k.domains("large"), running("0")[0]
	start := time.Now()
	k.ok("annotate", "node", lost, "jobset-apiserver.io/kwok-lost=yes")
	k.ok("patch", "node", lost, "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[
		{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status.","lastTransitionTime":"`+timestamp()+`"}]}}`)
	k.eventually(func() string { return k.hasNot("jobset/large", "{.status.restarts}", "1") })
	restarted := time.Since(start)
	k.eventually(runs("1"))
	after := k.domains("large")
	k.Logf("node %s of %v lost: restarted after %s, all ready in %v after %s", lost, before, restarted.Round(time.Second), after, time.Since(start).Round(time.Second))
	if slices.Equal(before, after) || slices.Contains(running("1"), lost) {
		k.Errorf("domains before and after the loss of a node: %v, %v", before, after)
	}
}

// placementShows waits until the condition PlacementPending of a set has a status, a reason and parts of its message.
func (k *kubectl) placementShows(set, status, reason string, texts ...string) {
	k.Helper()
	k.eventually(func() string {
		path := `{.status.conditions[?(@.type=="PlacementPending")].status} {.status.conditions[?(@.type=="PlacementPending")].reason} {.status.conditions[?(@.type=="PlacementPending")].message}`
		got := k.field("jobset/"+set, path)
		for _, text := range append(texts, status+" "+reason+" ") {
			if !strings.Contains(got, text) {
				return fmt.Sprintf("condition PlacementPending of %s: %q, want %q", set, got, text)
			}
		}
		return ""
	})
}

// domains returns those of the Jobs of a set by index.
func (k *kubectl) domains(set string) []string {
	return strings.Fields(k.field("jobset/"+set, "{.status.placement.replicatedJobs[*].jobs[*].domain}"))
}

// alone returns what is wrong if not all pods of so many Jobs of a set run, those of each in one rack, and without pods of other Jobs.
func (k *kubectl) alone(set string, jobs int) string {
	k.Helper()
	racks := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(k.ok("get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.labels.jobset-apiserver\.io/rack}{"\n"}{end}`)), "\n") {
		node, rack, _ := strings.Cut(line, " ")
		racks[node] = rack
	}
	var pods corev1.PodList
	if err := json.Unmarshal([]byte(k.ok("get", "pods", "-o", "json")), &pods); err != nil {
		return err.Error()
	}
	inRack, running := map[string]string{}, 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		rack, job := racks[pod.Spec.NodeName], pod.Labels["batch.kubernetes.io/job-name"]
		if other, found := inRack[rack]; found && other != job {
			return fmt.Sprintf("rack %q has pods of %s and %s", rack, other, job)
		}
		inRack[rack] = job
		if pod.Labels["jobset.sigs.k8s.io/jobset-name"] == set {
			running++
		}
	}
	if running != 2*jobs {
		return fmt.Sprintf("%d pods of %s run, want %d", running, set, 2*jobs)
	}
	domains := k.domains(set)
	for index, domain := range domains {
		if job := fmt.Sprintf("%s-w-%d", set, index); inRack[domain] != job {
			return fmt.Sprintf("rack %q has pods of %q, not of %s", domain, inRack[domain], job)
		}
	}
	if len(domains) != jobs {
		return fmt.Sprintf("%s has domains %v", set, domains)
	}
	return ""
}
