// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	gangs "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// gangRoundsVariable is the number of rounds of two sets that want the same room; small unless set.
const gangRoundsVariable = "JOBSET_GANG_ROUNDS"

// wholeGang makes a gang of a set.
const wholeGang = "scheduling: {schedulingPolicy: {gang: {}}}, "

// gangSet is a JobSet of two Jobs whose pods are a gang. Each pod succeeds once all of them run.
func gangSet(name, slots string) string {
	return fmt.Sprintf("---\n{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: %s}, spec: {%s"+
		"replicatedJobs: [{name: w, replicas: 2, template: {spec: {backoffLimit: 0, parallelism: %d, completions: %d, template: {metadata: {%s}}}}]}}\n",
		name, wholeGang, gang/2, gang/2, sizedGangSpec(name, slots))
}

// sizedGangSpec is a gangSpec with a label for the size of the group.
func sizedGangSpec(group, slots string) string {
	return strings.Replace(gangSpec(group, slots), "labels: {", fmt.Sprintf("labels: {%s: %q, ", plan.Prefixes[1].SizeKey, fmt.Sprint(gang)), 1)
}

// startGangCluster starts a cluster with the scheduling API and feature gates of the main API.
func startGangCluster(t *testing.T, ending string, more ...string) *cluster {
	t.Helper()
	const gate = "--feature-gates=JobSetWorkloadAwareSchedulingAPI=true"
	binaries, err := localcluster.TestBinaries(shared.Root)
	if err != nil {
		t.Fatal(err)
	}
	version, err := localcluster.Version(binaries)
	if err != nil {
		t.Fatal(err)
	}
	gates, api := localcluster.SchedulingFlags(version, more...)
	if !strings.HasPrefix(version, "v1.36.") {
		api += " --runtime-config=scheduling.k8s.io/" + string(gangs.V1alpha3) + "=true" // groupsInOlderVersion
	}
	return startCluster(t, ending, "CLUSTER_NODES=1", "CLUSTER_APISERVER_ARGS="+gate, "CLUSTER_CONTROLLER_ARGS="+gate,
		"CLUSTER_KUBE_SCHEDULER_ARGS="+gates, "CLUSTER_KUBE_CONTROLLER_MANAGER_ARGS="+gates, "CLUSTER_KUBE_APISERVER_ARGS="+gates+" "+api)
}

// inGangCluster runs tests at the same time, each in a namespace with nodes of its own.
func inGangCluster(t *testing.T, c *cluster, tests map[string]func(*kubectl)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newKubectlFor(t, c))
		})
	}
}

// TestGangsOfJobSets has a cluster with the scheduling API and no further gates.
func TestGangsOfJobSets(t *testing.T) {
	tier.OnRequest(t, "needs a cluster with the scheduler's gangs")
	t.Parallel() // its cluster is its own
	inGangCluster(t, startGangCluster(t, "scheduling"), map[string]func(*kubectl){
		"Turns": gangsTakeTurns, "Blocked": setsBlockEachOther, "Opened": gangsOpenedInTurns, "Pods": gangsOfPods,
		"Stages": gangsOfStages, "Suspension": gangIsSuspended, "Restart": gangRestarts, "Gates": gatesAreNamed,
	})
}

// gangRounds is how often sets compete for room: as often as the variable says, or else as here.
func gangRounds(t *testing.T, otherwise int) int {
	t.Helper()
	value := os.Getenv(gangRoundsVariable)
	if value == "" {
		return otherwise
	}
	rounds, err := strconv.Atoi(value)
	if err != nil || rounds < 1 {
		t.Fatalf("%s must be a number of rounds, and is %q", gangRoundsVariable, value)
	}
	return rounds
}

// podsOf returns the pods of a set.
func (k *kubectl) podsOf(set string) []corev1.Pod {
	k.Helper()
	var list corev1.PodList
	if err := json.Unmarshal([]byte(k.ok("get", "pods", "-l", "jobset.sigs.k8s.io/jobset-name="+set, "-o", "json")), &list); err != nil {
		k.Fatal(err)
	}
	return list.Items
}

// untilRunning waits until so many pods of the sets run.
func (k *kubectl) untilRunning(want int, sets ...string) {
	k.Helper()
	k.eventually(func() string {
		n := 0
		for _, set := range sets {
			for _, pod := range k.podsOf(set) {
				if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
					n++
				}
			}
		}
		if n != want {
			return fmt.Sprintf("%d pods of %s run, want %d", n, strings.Join(sets, ", "), want)
		}
		return ""
	})
}

// untilCompleted waits until sets have completed.
func (k *kubectl) untilCompleted(sets ...string) {
	k.Helper()
	for _, set := range sets {
		k.wait("--for=condition=Completed", "jobset/"+set)
	}
}

// deleteSets deletes all sets, with their Jobs and pods.
func (k *kubectl) deleteSets() {
	k.Helper()
	k.delete("jobset", "--all", "--cascade=foreground")
}

// firstOf returns which of two sets that have completed ran first. All pods of that one must have started before any of the other one.
func (k *kubectl) firstOf(left, right string) string {
	k.Helper()
	var first, last [2]time.Time
	for i, set := range []string{left, right} {
		pods := k.podsOf(set)
		if len(pods) != gang {
			k.Fatalf("%s has %d pods, want %d", set, len(pods), gang)
		}
		for _, pod := range pods {
			start := pod.Status.StartTime.Time
			if first[i].IsZero() || start.Before(first[i]) {
				first[i] = start
			}
			if start.After(last[i]) {
				last[i] = start
			}
		}
	}
	switch {
	case !last[0].After(first[1]):
		return left
	case !last[1].After(first[0]):
		return right
	}
	k.Fatalf("pods of %s started from %s to %s, those of %s from %s to %s: neither came as a whole", left, first[0], last[0], right, first[1], last[1])
	return ""
}

// gangsTakeTurns has two sets of 8 pods start at the same time, with room for 12: one after the other completes. Their
// groups go with the end.
func gangsTakeTurns(k *kubectl) {
	slots := k.withRoom()
	firsts := map[string]int{}
	for range gangRounds(k.T, 2) {
		k.okIn(gangSet("left", slots)+gangSet("right", slots), "create", "-f", "-")
		k.untilCompleted("left", "right")
		firsts[k.firstOf("left", "right")]++
		k.eventually(func() string {
			if left := k.ok("get", groupKinds, "-o", "name"); left != "" {
				return "groups of sets that have completed are left: " + left
			}
			return ""
		})
		k.deleteSets()
	}
	k.Logf("rounds in which each set came first: %v", firsts)
}

// gangsOfPods has the pods of two gangs come in turns, without a set: a PodGroup of the user's own is enough.
func gangsOfPods(k *kubectl) {
	slots := k.withRoom()
	version := regexp.MustCompile(`podgroups\s.*(scheduling\.k8s\.io/\w+)`).FindStringSubmatch(k.ok("api-resources", "--api-group=scheduling.k8s.io"))
	if version == nil {
		k.Fatal("the cluster serves no PodGroups")
	}
	for _, group := range []string{"left", "right"} {
		k.okIn(fmt.Sprintf("{apiVersion: %s, kind: PodGroup, metadata: {name: %s}, spec: {schedulingPolicy: {gang: {minCount: %d}}}}",
			version[1], group, gang), "create", "-f", "-")
	}
	k.createInTurns(slots, 0, gang, "schedulingGroup: {podGroupName: GROUP}, ")
	k.wait("--for=jsonpath={.status.phase}=Succeeded", "pods", "--all")
}
