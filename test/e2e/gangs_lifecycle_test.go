// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	gangs "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// groupKinds are the kinds of objects that a set with groups has.
const groupKinds = "workloads.scheduling.k8s.io,podgroups.scheduling.k8s.io"

// priorityClass creates a class of priorities above that of all other pods, and returns its name.
func (k *kubectl) priorityClass() string {
	k.Helper()
	k.Cleanup(func() { k.run("", "delete", "priorityclass", k.namespace) })
	k.okIn(fmt.Sprintf("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: 1000}", k.namespace), "create", "-f", "-")
	return k.namespace
}

// runningSet is a gangSet whose pods run until the test ends them, or has one of them fail.
func runningSet(name, slots string) string {
	return strings.ReplaceAll(gangSet(name, slots), "group-ready", "running")
}

// endPods lets the pods of a set succeed.
func (k *kubectl) endPods(set string) {
	k.Helper()
	k.ok("annotate", "pods", "-l", "jobset.sigs.k8s.io/jobset-name="+set, "--overwrite", "jobset-apiserver.io/kwok-outcome=succeeded")
}

// gangIsSuspended has groups go with a suspension, and others come with the end of it.
func gangIsSuspended(k *kubectl) {
	slots := k.withRoom()
	k.okIn(runningSet("train", slots), "create", "-f", "-")
	k.untilRunning(gang, "train")
	before := k.ok("get", groupKinds, "-o", "jsonpath={.items[*].metadata.uid}")
	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	k.wait("--for=condition=Suspended", "jobset/train")
	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	k.untilRunning(gang, "train")
	after := k.ok("get", groupKinds, "-o", "jsonpath={.items[*].metadata.uid}")
	if len(strings.Fields(before)) != 2 || len(strings.Fields(after)) != 2 || before == after {
		k.Errorf("groups %q before the suspension, %q after it; want a Workload and a PodGroup, and others after it", before, after)
	}
}

// gangRestarts has a gang keep its group for a restart. This cluster does not keep the priority class of groups, which
// is no reason to refuse the set.
func gangRestarts(k *kubectl) {
	slots, class := k.withRoom(), k.priorityClass()
	set := strings.NewReplacer("spec: {restartPolicy", "spec: {priorityClassName: "+class+", restartPolicy",
		"spec: {"+wholeGang, "spec: {failurePolicy: {maxRestarts: 1}, "+wholeGang).Replace(runningSet("train", slots))
	k.okIn(set, "create", "-f", "-")
	k.untilRunning(gang, "train")
	before := k.ok("get", groupKinds, "-o", "jsonpath={.items[*].metadata.uid}")
	k.ok("annotate", "pod", k.podsOf("train")[0].Name, "--overwrite", "jobset-apiserver.io/kwok-outcome=failed")
	k.wait("--for=jsonpath={.status.restarts}=1", "jobset/train")
	k.eventually(func() string {
		if n := len(strings.Fields(k.ok("get", "pods", "-l", "jobset.sigs.k8s.io/restart-attempt=1", "--field-selector=status.phase=Running", "-o", "name"))); n != gang {
			return fmt.Sprintf("%d pods of the second attempt run, want %d", n, gang)
		}
		return ""
	})
	if after := k.ok("get", groupKinds, "-o", "jsonpath={.items[*].metadata.uid}"); len(strings.Fields(before)) != 2 || before != after {
		k.Errorf("groups %q before the restart, %q after it; want a Workload and a PodGroup, and the same", before, after)
	}
	k.endPods("train")
	k.untilCompleted("train")
}

// gatesAreNamed has sets ask for what the gates of this cluster do not allow. That is said, and no Job starts.
func gatesAreNamed(k *kubectl) {
	gates := map[string]string{"schedulingConstraints: {topology: [{key: rack}]}": "TopologyAwareWorkloadScheduling"}
	if k.serves(gangs.V1alpha2) { // in later versions GenericWorkload is enough
		gates["disruptionMode: {all: {}}"] = "WorkloadAwarePreemption"
	}
	for field, gate := range gates {
		k.okIn(strings.Replace(gangSet("train", "example.com/none"), "scheduling: {", "scheduling: {"+field+", ", 1), "create", "-f", "-")
		k.wait("--for=condition=JobCreationFailure", "jobset/train")
		if message := k.field("jobset/train", `{.status.conditions[?(@.type=="JobCreationFailure")]}`); !strings.Contains(message, gate) {
			k.Errorf("%s: the condition does not name the gate %s: %s", field, gate, message)
		}
		if jobs := k.ok("get", "jobs", "-o", "name"); jobs != "" {
			k.Errorf("%s: Jobs start without their group: %s", field, jobs)
		}
		k.deleteSets()
	}
}
