// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

// closed keeps pods from the scheduler until a test removes it from them.
const closed = "schedulingGates: [{name: example.com/turn}], "

// createClosed creates two sets whose pods the scheduler does not look at yet, and waits for the pods. With no kind of
// group, they are no gangs.
func (k *kubectl) createClosed(slots, groups string) {
	k.Helper()
	manifests := gangSet("left", slots) + gangSet("right", slots)
	k.okIn(strings.NewReplacer("spec: {restartPolicy", "spec: {"+closed+"restartPolicy", wholeGang, groups).Replace(manifests), "create", "-f", "-")
	k.eventually(func() string {
		if n := len(k.podsOf("left")) + len(k.podsOf("right")); n != 2*gang {
			return fmt.Sprintf("%d pods exist, want %d", n, 2*gang)
		}
		return ""
	})
}

// open lets the scheduler look at the pods with these indexes of each Job.
func (k *kubectl) open(indexes string) {
	k.Helper()
	pods := strings.Fields(k.ok("get", "pods", "-l", "batch.kubernetes.io/job-completion-index in ("+indexes+")", "-o", "name"))
	k.ok(append([]string{"patch", "--type=json", "-p", `[{"op": "remove", "path": "/spec/schedulingGates"}]`}, pods...)...)
}

// unschedulable returns how many pods of a set the scheduler found no room for.
func (k *kubectl) unschedulable(set string) (n int) {
	k.Helper()
	for _, pod := range k.podsOf(set) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				n++
			}
		}
	}
	return n
}

// setsBlockEachOther has the scheduler see six pods of each set first. Without gangs they take the room for 12, and
// neither set is ever whole.
func setsBlockEachOther(k *kubectl) {
	slots := k.withRoom()
	for range gangRounds(k.T, 1) {
		k.createClosed(slots, "")
		k.open("0, 1, 2")
		k.untilRunning(room, "left", "right")
		k.open("3")
		for _, set := range []string{"left", "right"} {
			k.eventually(func() string { return cmp.Diff(gang-room/2, k.unschedulable(set)) })
			want := fmt.Sprintf("%s %d by label: %d/%d run, 0 ready, Pending", plan.Prefixes[1].Name, gang, room/2, gang)
			k.eventually(func() string { return cmp.Diff(want, k.groupFigures(set)) })
		}
		k.untilRunning(room, "left", "right")

		// Whoever gives way lets the other one through.
		k.delete("jobset", "right", "--cascade=foreground")
		k.untilCompleted("left")
		k.deleteSets()
	}
}

// gangsOpenedInTurns has the scheduler see the pods of the same sets in the same order. As gangs they wait for the
// whole set, and each completes.
func gangsOpenedInTurns(k *kubectl) {
	slots := k.withRoom()
	for range gangRounds(k.T, 1) {
		k.createClosed(slots, wholeGang)
		k.open("0, 1, 2")
		k.open("3")
		k.untilCompleted("left", "right")
		k.firstOf("left", "right")
		k.deleteSets()
	}
}

// gangsOfStages has two sets whose replicatedJobs start one after another, each as a gang of its own, at the same time.
func gangsOfStages(k *kubectl) {
	slots := k.withRoom()
	for order, size := range map[string]int{
		// Both stages of a set run at the same time in the end, and 12 pods are three stages.
		"dependsOn: [{name: a, status: Ready}], ":        gang / 2,
		"startupPolicy: {startupPolicyOrder: InOrder}, ": gang / 2,
		// Stages follow each other, and 12 pods are one stage.
		"dependsOn: [{name: a, status: Complete}], ": gang,
	} {
		k.okIn(stagedSet("left", slots, order, size)+stagedSet("right", slots, order, size), "create", "-f", "-")
		k.untilCompleted("left", "right")
		templates := strings.Fields(k.ok("get", "jobs", "-o", `jsonpath={.items[*].metadata.annotations.scheduling\.k8s\.io/group-template-name}`))
		if sets.New(templates...).Len() != 4 {
			k.Errorf("%s: Jobs are in the groups %q, want one for each stage of each set", order, templates)
		}
		k.deleteSets()
	}
}

// stagedSet is a JobSet with two replicatedJobs of so many pods, which start in an order.
func stagedSet(name, slots, order string, size int) string {
	depends, startup := order, ""
	if strings.HasPrefix(order, "startupPolicy") {
		depends, startup = "", order
	}
	stage := func(stage, more string) string {
		group := name
		if size == gang {
			group += "-" + stage
		}
		return fmt.Sprintf("{name: %s, %stemplate: {spec: {backoffLimit: 0, parallelism: %d, completions: %d, template: {metadata: {%s}}}}",
			stage, more, size, size, sizedGangSpec(group, slots))
	}
	return fmt.Sprintf("---\n{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: %s}, spec: {%s%sreplicatedJobs: [%s, %s]}}\n",
		name, wholeGang, startup, stage("a", ""), stage("b", depends))
}
