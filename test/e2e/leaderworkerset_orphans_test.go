// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestOrphanedChildrenAreAdopted deletes a set without its children, and creates it again: its pods run on, and its
// children have an owner again. So have the children of leader pods that lose their owner, as in a cluster that was restored
// from a backup.
func TestOrphanedChildrenAreAdopted(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	const set = "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: kept}\n" +
		"spec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox}]}}}}\n"
	k.okIn(set, "create", "-f", "-")
	k.wait("--for=condition=Available", "lws/kept")
	uids := func() string {
		return k.ok("get", "pods", "-l", "leaderworkerset.sigs.k8s.io/name=kept", "--sort-by=.metadata.name", "-o", "jsonpath={.items[*].metadata.uid}")
	}
	before := uids()
	k.ok("delete", "lws", "kept", "--cascade=orphan")
	k.eventually(func() string { return k.hasNot("statefulset/kept", "{.metadata.ownerReferences}", "") })
	k.okIn(set, "create", "-f", "-")
	controlled := func(wants ...string) {
		for _, want := range wants {
			object, owner, _ := strings.Cut(want, " ")
			k.eventually(func() string {
				return k.hasNot(object, "{.metadata.ownerReferences[?(@.controller==true)].uid}", k.ok("get", owner, "-o", "jsonpath={.metadata.uid}"))
			})
		}
	}
	revision := strings.TrimSpace(k.ok("get", "controllerrevisions", "-l", "leaderworkerset.sigs.k8s.io/name=kept", "-o",
		`jsonpath={range .items[?(@.data.spec.leaderWorkerTemplate)]}controllerrevision/{.metadata.name}{"\n"}{end}`))
	controlled("statefulset/kept lws/kept", "service/kept lws/kept", revision+" lws/kept")
	k.wait("--for=condition=Available", "lws/kept")

	k.ok("patch", "statefulset", "kept-1", "--type=merge", "-p", `{"metadata":{"ownerReferences":null}}`)
	controlled("statefulset/kept-1 pod/kept-1")
	k.wait("--for=condition=Available", "lws/kept")
	if after := uids(); after != before {
		t.Errorf("pods %s, before: %s", after, before)
	}
	k.eventually(func() string {
		got := k.ok("get", "events", "--field-selector=reason=AdoptedChild", "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`)
		for _, child := range []string{"StatefulSet kept,", "Service kept,", "ControllerRevision kept-", "StatefulSet kept-1,"} {
			if !strings.Contains(got, child) {
				return fmt.Sprintf("no event about %s in:\n%s", child, got)
			}
		}
		return ""
	})
}
