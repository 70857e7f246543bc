// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// groups is a set of two groups of three pods, to which two more groups are added while there is no room for them.
const groups = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: serve
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 3
    restartPolicy: None
    workerTemplate:
      spec:
        terminationGracePeriodSeconds: 0
        containers:
        - name: main
          image: registry.example/server:v1
`

const (
	// outage is so long that the controller of StatefulSets, which waits twice as long after each refusal, by itself tries
	// again 328 seconds after the first one.
	outage = 170 * time.Second
	// completed is how soon after the return of the server all groups must be complete: earlier than that controller tries again, and
	// three times as late as on an idle machine.
	completed = 120 * time.Second
)

// TestGroupsCompleteAfterOutage has pods of sets refused while the server is away, of two groups that are being created
// and of one that runs, and none admitted without its environment. By itself, the controller of StatefulSets would try
// again more than two minutes after the return. Its cluster is its own.
func TestGroupsCompleteAfterOutage(t *testing.T) {
	tier.OnRequest(t, "stops the server for more than a minute")
	t.Parallel()
	k := newKubectlFor(t, startCluster(t, "outage", "CLUSTER_NODES=3", "CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown))
	k.okIn(groups, "apply", "-f", "-")
	k.eventually(func() string { return k.runningGroupPods(6) })
	k.ok("create", "quota", "full", "--hard=pods=6")
	k.eventually(func() string { return k.hasNot("quota/full", "{.status.used.pods}", "6") })
	k.ok("scale", "lws/serve", "--replicas=4")
	k.eventually(func() string { return k.hasNot("statefulset/serve", "{.spec.replicas}", "4") })

	if err := k.cluster.Script("stop", "apiserver"); err != nil {
		t.Fatal(err)
	}
	started := false
	t.Cleanup(func() {
		if started {
			return
		}
		if err := k.cluster.Script("start", "apiserver"); err != nil {
			t.Error(err)
		}
	})
	k.ok("delete", "quota", "full")
	k.ok("delete", "pod", "serve-0-1", "--wait=true")
	k.eventually(func() string {
		events := k.ok("get", "events", "--field-selector=reason=FailedCreate", "-o", "jsonpath={range .items[*]}{.involvedObject.name} {.message}{\"\\n\"}{end}")
		for line := range strings.Lines(events) {
			if strings.HasPrefix(line, "serve-0 ") && strings.Contains(line, `failed calling webhook "mpod.kb.io"`) {
				return ""
			}
		}
		return "no pod was refused: " + events
	})
	k.ok("run", "other", "--image=registry.example/other:v1")
	names := func() string {
		return k.ok("get", "pods", "-l", "leaderworkerset.sigs.k8s.io/name=serve", "-o", "jsonpath={.items[*].metadata.name}")
	}
	stay(k, outage, "serve-0 serve-0-2 serve-1 serve-1-1 serve-1-2", names)

	if err := k.cluster.Script("start", "apiserver"); err != nil {
		t.Fatal(err)
	}
	started = true
	returned := time.Now()
	k.eventually(func() string { return k.runningGroupPods(12) })
	took := time.Since(returned)
	t.Logf("all groups are complete %s after the return of the server", took.Round(time.Second/10))
	if took > completed {
		t.Errorf("want them complete within %s", completed)
	}
	envs := k.ok("get", "pods", "-l", "leaderworkerset.sigs.k8s.io/name=serve", "-o", "jsonpath={range .items[*]}{.spec.containers[0].env[0].name}{\"\\n\"}{end}")
	if got := strings.Count(envs, "LWS_LEADER_ADDRESS\n"); got != 12 {
		t.Errorf("%d of 12 pods begin their environment with LWS_LEADER_ADDRESS", got)
	}
	k.wait("--for=condition=Available", "lws/serve")
}

// runningGroupPods returns what keeps so many pods of the set from running.
func (k *kubectl) runningGroupPods(want int) string {
	got := k.ok("get", "pods", "-l", "leaderworkerset.sigs.k8s.io/name=serve", "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}")
	if len(strings.Fields(got)) != want {
		return "pods that run: " + got
	}
	return ""
}
