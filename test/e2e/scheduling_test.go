// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

// gangSet is a JobSet of two Jobs whose pods are a gang. Each pod succeeds once all of them run.
func gangSet(name, slots string) string {
	pod := strings.Replace(gangSpec(name, slots), "labels: {", fmt.Sprintf("labels: {%s: %q, ", plan.Families[1].SizeKey, fmt.Sprint(gang)), 1)
	return fmt.Sprintf("---\n{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: %s}, spec: {scheduling: {schedulingPolicy: {gang: {}}}, "+
		"replicatedJobs: [{name: w, replicas: 2, template: {spec: {backoffLimit: 0, parallelism: %d, completions: %d, template: {metadata: {%s}}}}]}}\n",
		name, gang/2, gang/2, pod)
}

// TestGangsOfJobSets has two sets of 8 pods start at the same time, with room for 12, in a cluster with the scheduling API: one after the other completes.
// Their groups go with the end, and with a suspension.
func TestGangsOfJobSets(t *testing.T) {
	const ours, gates = "--feature-gates=JobSetWorkloadAwareSchedulingAPI=true", "--feature-gates=GenericWorkload=true,GangScheduling=true"
	k := newKubectlFor(t, startCluster(t, "scheduling", "CLUSTER_NODES=1", "CLUSTER_APISERVER_ARGS="+ours, "CLUSTER_CONTROLLER_ARGS="+ours,
		"CLUSTER_KUBE_SCHEDULER_ARGS="+gates, "CLUSTER_KUBE_CONTROLLER_MANAGER_ARGS="+gates,
		"CLUSTER_KUBE_APISERVER_ARGS="+gates+" --runtime-config=scheduling.k8s.io/v1alpha2=true"))
	slots := k.withRoom()
	const groups = "workloads.scheduling.k8s.io,podgroups.scheduling.k8s.io"
	for range 3 {
		k.okIn(gangSet("left", slots)+gangSet("right", slots), "create", "-f", "-")
		k.ok("wait", "--for=condition=Completed", "jobset/left", "jobset/right", "--timeout=180s")
		k.eventually(groupSteps, func() string {
			if left := k.ok("get", groups, "-o", "name"); left != "" {
				return "groups of sets that have completed are left: " + left
			}
			return ""
		})
		k.ok("delete", "jobset", "--all", "--cascade=foreground", "--timeout=180s")
	}

	k.okIn(strings.ReplaceAll(gangSet("suspended", slots), "group-ready", "running"), "create", "-f", "-")
	running := func() string {
		if n := strings.Fields(k.ok("get", "pods", "--field-selector=status.phase=Running", "-o", "name")); len(n) != gang {
			return fmt.Sprintf("%d pods run, want %d", len(n), gang)
		}
		return ""
	}
	k.eventually(groupSteps, running)
	before := k.ok("get", groups, "-o", "jsonpath={.items[*].metadata.uid}")
	k.ok("patch", "jobset", "suspended", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	k.ok("wait", "--for=condition=Suspended", "jobset/suspended", "--timeout=180s")
	k.ok("patch", "jobset", "suspended", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	k.eventually(groupSteps, running)
	after := k.ok("get", groups, "-o", "jsonpath={.items[*].metadata.uid}")
	if len(strings.Fields(before)) != 2 || len(strings.Fields(after)) != 2 || before == after {
		t.Errorf("groups %q before the suspension, %q after it; want a Workload and a PodGroup, and others after it", before, after)
	}

	// What the gates of this cluster do not allow is said, and starts no Job.
	for field, gate := range map[string]string{
		"schedulingConstraints: {topology: [{key: rack}]}": "TopologyAwareWorkloadScheduling", "disruptionMode: {all: {}}": "WorkloadAwarePreemption",
	} {
		k.okIn(strings.Replace(gangSet("more", slots), "scheduling: {", "scheduling: {"+field+", ", 1), "create", "-f", "-")
		k.ok("wait", "--for=condition=JobCreationFailure", "jobset/more", "--timeout=60s")
		if message := k.field("jobset/more", `{.status.conditions[?(@.type=="JobCreationFailure")]}`); !strings.Contains(message, gate) {
			t.Errorf("%s: the condition does not name the gate %s: %s", field, gate, message)
		}
		if jobs := k.ok("get", "jobs", "-l", "jobset.sigs.k8s.io/jobset-name=more", "-o", "name"); jobs != "" {
			t.Errorf("%s: Jobs start without their group: %s", field, jobs)
		}
		k.ok("delete", "jobset", "more", "--cascade=foreground", "--timeout=180s")
	}
}
