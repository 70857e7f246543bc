// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// gang is the size of each of two groups, and room the number of their pods that fit at a time.
const gang, room = 8, 12

// withRoom adds a node that has room for pods which ask for the resource, and returns the resource.
func (k *kubectl) withRoom() string {
	k.Helper()
	slots := "example.com/" + k.namespace
	k.addNode(k.namespace, slots, room, nil)
	return slots
}

// addNode adds a node that has room for so many pods which ask for the resource. Pods of other tests keep off it, because
// the node is deleted with the test: the pods would be gone with it.
func (k *kubectl) addNode(name, slots string, room int, labels map[string]string) {
	k.Helper()
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("250"), corev1.ResourceName(slots): resource.MustParse(fmt.Sprint(room)),
	}
	node := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "example.com/only-for", Value: k.namespace, Effect: corev1.TaintEffectNoSchedule}}},
		Status:     corev1.NodeStatus{Allocatable: size, Capacity: size},
	}
	manifest, err := json.Marshal(node)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { k.run("", "delete", "node", name) })
	k.okIn(string(manifest), "create", "-f", "-")
	k.wait("--for=condition=Ready", "node/"+name)
	k.admitsPods()
}

// gangSpec is the spec of a pod of a gang, which succeeds once all of the gang run.
func gangSpec(group, slots string) string {
	return fmt.Sprintf(`labels: {%s: %s}, annotations: {jobset-apiserver.io/kwok-outcome: group-ready}}, spec: {restartPolicy: Never, `+
		`tolerations: [{key: example.com/only-for, operator: Exists}], containers: [{name: main, image: busybox, resources: {limits: {%s: 1}}}]}`, plan.Prefixes[1].GroupKey, group, slots)
}

// createInTurns creates the pods of two gangs from one number to the one before another, of the left and the right in turns. More is
// added to their specs.
func (k *kubectl) createInTurns(slots string, from, to int, more string) {
	k.Helper()
	var pods strings.Builder
	for i := from; i < to; i++ {
		for _, group := range []string{"left", "right"} {
			spec := strings.Replace(gangSpec(group, slots), "labels: {", fmt.Sprintf("labels: {%s: %q, ", plan.Prefixes[1].SizeKey, fmt.Sprint(gang)), 1)
			spec = strings.Replace(spec, "spec: {", "spec: {"+strings.ReplaceAll(more, "GROUP", group), 1)
			fmt.Fprintf(&pods, "---\n{apiVersion: v1, kind: Pod, metadata: {name: %s-%d, %s}\n", group, i, spec)
		}
	}
	k.okIn(pods.String(), "create", "-f", "-")
}

// TestTwoGangsBlockEachOther has the pods of two gangs of 8 come in turns, with room for 12: six of each run, and neither gang is ever
// complete. Labels do not place pods, so that this stays as it is until a user makes room.
func TestTwoGangsBlockEachOther(t *testing.T) {
	tier.OnRequest(t, "has nodes of its own that sets compete for")
	t.Parallel()
	k := newKubectl(t)
	slots := k.withRoom()
	k.createInTurns(slots, 0, room/2, "")
	k.wait("--for=jsonpath={.status.phase}=Running", "pods", "--all")
	k.createInTurns(slots, room/2, gang, "")
	k.eventually(func() string {
		waiting := k.ok("get", "events", "--field-selector=reason=FailedScheduling", "-o", "jsonpath={.items[*].involvedObject.name}")
		for _, name := range []string{"left-6", "left-7", "right-6", "right-7"} {
			if !strings.Contains(waiting, name) {
				return fmt.Sprintf("the scheduler has not looked for room for %s: %s", name, waiting)
			}
		}
		return ""
	})
	for _, group := range []string{"left", "right"} {
		want := fmt.Sprintf("%s %d by label: %d/%d run, 0 ready, Pending", plan.Prefixes[1].Name, gang, room/2, gang)
		k.eventually(func() string { return cmp.Diff(want, k.groupFigures(group)) })
	}

	// Whoever gives way lets the other one through, whose end makes room.
	for i := range gang {
		k.ok("delete", "pod", fmt.Sprintf("right-%d", i), "--wait=false")
	}
	k.wait("--for=jsonpath={.status.phase}=Succeeded", "pods", "-l", plan.Prefixes[1].GroupKey+"=left")
}

// TestGangsInTurnComplete starts the second gang when the first has completed. Both are Jobs, suspended until it is their turn.
func TestGangsInTurnComplete(t *testing.T) {
	tier.OnRequest(t, "has nodes of its own that sets compete for")
	t.Parallel()
	k := newKubectl(t)
	slots := k.withRoom()
	gangs := []string{"left", "right"}
	for _, group := range gangs {
		k.okIn(fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {suspend: true, parallelism: %d, completions: %d, "+
			"template: {metadata: {%s}}}", group, gang, gang, gangSpec(group, slots)), "apply", "-f", "-")
	}
	for _, group := range gangs {
		k.ok("patch", "job", group, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
		k.wait("--for=condition=Complete", "job/"+group)
	}
	for _, group := range gangs {
		want := fmt.Sprintf("%s %d by owners: %d/%d run, %d ready, Ready", plan.Prefixes[1].Name, gang, gang, gang, gang)
		k.eventually(func() string { return cmp.Diff(want, k.groupFigures(group)) })
	}
}
