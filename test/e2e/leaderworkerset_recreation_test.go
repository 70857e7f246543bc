// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestDeletedLeadersRecreateTheirGroupsOnce deletes the leader pods of ten groups at once. What the garbage collector
// still does to the workers of the former groups is no reason to recreate the new ones, and each group says in the
// status why it was recreated, and how often.
func TestDeletedLeadersRecreateTheirGroupsOnce(t *testing.T) {
	tier.OnRequest(t, "recreates ten groups at a time")
	t.Parallel()
	const groups = 10
	k := newKubectl(t)
	k.okIn(fmt.Sprintf("apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: many}\n"+
		"spec: {replicas: %d, leaderWorkerTemplate: {size: 3, workerTemplate: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox}]}}}}\n", groups),
		"create", "-f", "-")
	k.wait("--for=condition=Available", "lws/many")
	const leaders = "leaderworkerset.sigs.k8s.io/worker-index=0"
	seen := map[string]bool{}
	look := func() {
		for _, uid := range strings.Fields(k.ok("get", "pods", "-l", leaders, "-o", "jsonpath={.items[*].metadata.uid}")) {
			seen[uid] = true
		}
	}
	look()
	k.ok("delete", "pods", "-l", leaders)
	k.eventually(func() string {
		if look(); len(seen) < 2*groups {
			return fmt.Sprintf("%d leader pods in all, want %d", len(seen), 2*groups)
		}
		return ""
	})
	k.wait("--for=condition=Available", "lws/many")
	// What the garbage collector and the controller had to do before, they have done when they did this: to delete an object
	// whose owner does not exist, and to create one more group.
	k.okIn("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: decoy\n"+
		"  ownerReferences: [{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: many, uid: 00000000-0000-0000-0000-000000000000}]\n", "create", "-f", "-")
	k.wait("--for=delete", "configmap/decoy")
	k.ok("scale", "lws/many", fmt.Sprint("--replicas=", groups+1))
	k.wait(fmt.Sprintf("--for=jsonpath={.status.readyReplicas}=%d", groups+1), "lws/many")
	k.wait("--for=condition=Available", "lws/many")
	k.eventually(func() string {
		look()
		return ""
	})
	if len(seen) != 2*groups+1 {
		t.Errorf("%d leader pods in all, want %d: %v", len(seen), 2*groups+1, slices.Sorted(maps.Keys(seen)))
	}
	var want []string
	for i := range groups {
		want = append(want, fmt.Sprintf("%d/1/many-%d/the pod was deleted", i, i))
	}
	got := k.ok("get", "lws/many", "-o", `jsonpath={range .status.groups[*]}{.index}/{.restarts}/{.firstCause.pod}/{.firstCause.message}{"\n"}{end}`)
	if got = strings.TrimSpace(got); got != strings.Join(want, "\n") {
		t.Errorf("status.groups:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	notes := strings.Fields(k.ok("get", "events", "--field-selector=reason=RecreateGroup", "-o", `jsonpath={range .items[*]}{.involvedObject.name}{"\n"}{end}`))
	if len(notes) != groups {
		t.Errorf("%d events RecreateGroup, want %d", len(notes), groups)
	}
}
