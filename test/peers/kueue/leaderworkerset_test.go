// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubectl"
)

// leaderWorkerSet makes a set of two groups of two pods that ask for one CPU each. An update needs a group more.
func leaderWorkerSet(k *kubectl.Kubectl) {
	k.Helper()
	k.OKIn(`apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: serve
  labels: {kueue.x-k8s.io/queue-name: team}
spec:
  replicas: 2
  rolloutStrategy: {type: RollingUpdate, rollingUpdateConfiguration: {maxSurge: 1, maxUnavailable: 0}}
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
      spec: {containers: [{name: main, image: "busybox:1", resources: {requests: {cpu: "1"}}}]}
`, "create", "-f", "-")
}

// groups awaits the numbers of all, of ready and of updated replicas of the set.
func groups(k *kubectl.Kubectl, want string) {
	k.Helper()
	k.Awaits("leaderworkerset/serve", "{.status.replicas} {.status.readyReplicas} {.status.updatedReplicas}", want)
}

// A set has a Workload for each group, and gives the quota back.
func TestLeaderWorkerSetLife(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 4)
	leaderWorkerSet(k)
	groups(k, "2 2 2")
	reserved(k, "4")
	k.OK("scale", "leaderworkerset/serve", "--replicas=3")
	why(k, "lws/serve", "group 2 is held by Kueue")
	k.OK("scale", "leaderworkerset/serve", "--replicas=1")
	groups(k, "1 1 1")
	reserved(k, "2")
	k.OK("delete", "leaderworkerset/serve")
	reserved(k, "0")
}

// An update that adds a group before it takes one away ends, and leaves no quota behind.
func TestLeaderWorkerSetIsUpdatedWithASurge(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 6)
	leaderWorkerSet(k)
	groups(k, "2 2 2")
	k.OK("patch", "leaderworkerset/serve", "--type=json", "-p", `[{"op":"replace","path":"/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image","value":"busybox:2"}]`)
	k.Awaits("leaderworkerset/serve", "{.status.conditions[?(@.type=='UpdateInProgress')].status}", "True")
	k.Awaits("leaderworkerset/serve", "{.status.conditions[?(@.type=='Available')].status}{.status.conditions[?(@.type=='UpdateInProgress')].status}", "TrueFalse")
	groups(k, "2 2 2")
	reserved(k, "4")
}
