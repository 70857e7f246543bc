// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	gangs "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestGangsWithAllGates has a cluster whose scheduler also preempts gangs as a whole and places them by topology, and
// whose Job controller makes groups of Jobs that have none.
func TestGangsWithAllGates(t *testing.T) {
	tier.OnRequest(t, "needs a cluster with the scheduler's gangs")
	t.Parallel() // its cluster is its own
	gates := []string{"TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption", "WorkloadWithJob"}
	inGangCluster(t, startGangCluster(t, "gates", gates...), map[string]func(*kubectl){
		"Preemption": gangIsPreempted, "PreemptionRestart": preemptedGangRestarts, "Topology": gangStaysInRack, "Jobs": jobsHaveOneGroup,
		"Versions": groupsInOlderVersion,
	})
}

// preempts has a set with a higher priority take the room of another one, whose pods all leave, and complete. It
// returns the pods that left.
func (k *kubectl) preempts(slots, victim string) sets.Set[string] {
	k.Helper()
	class := k.priorityClass()
	k.okIn(strings.Replace(victim, "scheduling: {", "scheduling: {disruptionMode: {all: {}}, ", 1), "create", "-f", "-")
	k.untilRunning(gang, "low")
	victims := sets.New[string]()
	for _, pod := range k.podsOf("low") {
		victims.Insert(pod.Name)
	}
	k.okIn(strings.Replace(gangSet("high", slots), "spec: {restartPolicy", "spec: {priorityClassName: "+class+", restartPolicy", 1), "create", "-f", "-")
	k.untilCompleted("high")
	for _, pod := range k.podsOf("low") {
		if victims.Has(pod.Name) && pod.DeletionTimestamp == nil {
			k.Errorf("the pod %s stays, although its gang had to leave", pod.Name)
		}
	}
	return victims
}

// gangIsPreempted has Jobs replace their pods after a preemption. The new ones wait for room for all of them.
func gangIsPreempted(k *kubectl) {
	slots := k.withRoom()
	// A Job replaces a single pod after ten seconds, and four of them after eighty.
	victim := strings.NewReplacer("replicas: 2", fmt.Sprintf("replicas: %d", gang), "backoffLimit: 0", "backoffLimit: 4",
		fmt.Sprintf("parallelism: %d, completions: %d", gang/2, gang/2), "parallelism: 1, completions: 1").Replace(runningSet("low", slots))
	victims := k.preempts(slots, victim)
	k.eventually(func() string {
		preempted := sets.New(strings.Fields(k.ok("get", "events", "--field-selector=reason=Preempted", "-o", "jsonpath={.items[*].involvedObject.name}"))...)
		if !preempted.Equal(victims) {
			return fmt.Sprintf("the scheduler removed the pods %v, want %v", sets.List(preempted), sets.List(victims))
		}
		return ""
	})
	k.untilRunning(gang, "low")
	k.endPods("low")
	k.untilCompleted("low")
	if restarts := k.field("jobset/low", "{.status.restarts}"); restarts != "" && restarts != "0" {
		k.Errorf("%s restarts of the set, whose Jobs replace pods", restarts)
	}
}

// preemptedGangRestarts has a set restart after a preemption. Its second attempt waits for room for all of its pods.
func preemptedGangRestarts(k *kubectl) {
	slots := k.withRoom()
	k.preempts(slots, strings.Replace(runningSet("low", slots), "spec: {"+wholeGang, "spec: {failurePolicy: {maxRestarts: 1}, "+wholeGang, 1))
	k.wait("--for=jsonpath={.status.restarts}=1", "jobset/low")
	k.untilRunning(gang, "low")
	k.endPods("low")
	k.untilCompleted("low")
}

// gangStaysInRack has three racks, of which one has room for a whole gang. A second gang waits for that one, although
// the others have room for it together.
func gangStaysInRack(k *kubectl) {
	slots, key := "example.com/"+k.namespace, "example.com/rack-"+k.namespace
	racks := map[string]string{}
	for rack, size := range map[string]int{"small": 3, "large": gang / 2, "other": 3} {
		for i := range 2 {
			name := fmt.Sprintf("%s-%s-%d", k.namespace, rack, i)
			racks[name] = rack
			k.addNode(name, slots, size, map[string]string{key: rack})
		}
	}
	inRack := func(set string) string {
		return strings.Replace(set, "scheduling: {", "scheduling: {schedulingConstraints: {topology: [{key: "+key+"}]}, ", 1)
	}
	inLarge := func(set string) {
		k.untilRunning(gang, set)
		for _, pod := range k.podsOf(set) {
			if rack := racks[pod.Spec.NodeName]; rack != "large" {
				k.Errorf("the pod %s of %s runs in the rack %s", pod.Name, set, rack)
			}
		}
	}
	k.okIn(inRack(runningSet("first", slots)), "create", "-f", "-")
	inLarge("first")
	k.okIn(inRack(runningSet("second", slots)), "create", "-f", "-")
	k.eventually(func() string {
		if n := k.unschedulable("second"); n != gang {
			return fmt.Sprintf("the scheduler has found no room for %d pods of the second set, want %d", n, gang)
		}
		return ""
	})
	for _, pod := range k.podsOf("second") {
		if pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending {
			k.Errorf("the pod %s of the second set runs in the rack %s", pod.Name, racks[pod.Spec.NodeName])
		}
	}
	k.endPods("first")
	k.untilCompleted("first")
	inLarge("second")
	k.endPods("second")
	k.untilCompleted("second")
}

// jobsHaveOneGroup has the Job controller make no groups for the Jobs of a set that has groups. For each Job of a set that has none,
// Kubernetes 1.36 makes one, and later versions make none, since the set controls the Job.
func jobsHaveOneGroup(k *kubectl) {
	slots := k.withRoom()
	groups := func() string {
		return k.ok("get", groupKinds, "-o", `jsonpath={range .items[*]}{.kind} of {.metadata.ownerReferences[?(@.controller==true)].kind}{"\n"}{end}`)
	}
	plain := strings.Replace(runningSet("plain", slots), wholeGang, "", 1)
	k.okIn(plain, "create", "-f", "-")
	k.untilRunning(gang, "plain")
	want := ""
	if k.serves(gangs.V1alpha2) {
		want = strings.Repeat("Workload of Job\n", 2) + strings.Repeat("PodGroup of Job\n", 2)
	}
	if got := groups(); got != want {
		k.Fatalf("a set without groups has %q, want %q", got, want)
	}
	k.deleteSets()
	k.eventually(groups)

	k.okIn(runningSet("train", slots), "create", "-f", "-")
	k.untilRunning(gang, "train")
	if got, want := groups(), "Workload of JobSet\nPodGroup of JobSet\n"; got != want {
		k.Errorf("a set with a group has %q, want %q", got, want)
	}
	k.endPods("train")
	k.untilCompleted("train")
}
