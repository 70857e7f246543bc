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

// What the garbage collector must never do is to take the owner for gone while the server or its store is away.

func TestChildrenSurviveARestartOfTheServer(t *testing.T) {
	tier.OnRequest(t, "stops the server and etcd that other tests use")
	// Without --etcd-servers the store lives in the server's process: this stops both.
	childrenSurvive(t, newKubectl(t), "apiserver")
}

func TestChildrenSurviveARestartOfEtcd(t *testing.T) {
	tier.OnRequest(t, "stops the server and etcd that other tests use")
	t.Parallel() // its cluster is its own
	c := startCluster(t, "etcd", "CLUSTER_STORAGE=etcd", "CLUSTER_NODES=3", "CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown)
	childrenSurvive(t, newKubectlFor(t, c), "etcd")
}

// childrenSurvive stops a component under a running set, looks that the children stay, and starts it again.
func childrenSurvive(t *testing.T, k *kubectl, component string) {
	t.Helper()
	k.okIn(manifest("train", runOn), "apply", "-f", "-")
	k.eventually(func() string {
		if got := k.ok("get", "pods", "--field-selector=status.phase=Running", "-o", "name"); strings.Count(got, "\n") != 2 {
			return "pods that run: " + got
		}
		return ""
	})
	identities := func() string {
		return k.ok("get", "jobs,services,pods", "-o", "jsonpath={.items[*].metadata.uid}")
	}
	children, uid := identities(), k.field("jobset/train", "{.metadata.uid}")

	if err := k.cluster.Script("stop", component); err != nil {
		t.Fatal(err)
	}
	started := false
	t.Cleanup(func() {
		if started {
			return
		}
		if err := k.cluster.Script("start", component); err != nil {
			t.Error(err)
		}
	})
	if r := k.run(manifest("late", runOn), "create", "--validate=false", "--request-timeout=10s", "-f", "-"); r.code == 0 {
		t.Errorf("a write succeeds without %s", component)
	}
	// The collector looks at a Job again when its owner seems to be gone; a change of the Job makes it look now.
	k.ok("annotate", "jobs", "--all", "looked-at=yes")
	stay(k, 15*time.Second, children, identities)

	if err := k.cluster.Script("start", component); err != nil {
		t.Fatal(err)
	}
	started = true
	k.eventually(func() string {
		r := k.run("", "get", "jobset", "train", "-o", "jsonpath={.metadata.uid}")
		if r.stdout != uid {
			return "the set is not back: " + r.stdout + r.stderr
		}
		return ""
	})
	stay(k, 10*time.Second, children, identities)

	// And the set still lives: what comes later is still acted on.
	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	k.wait("--for=condition=Suspended", "jobset/train")
}

// stay looks for a while and fails as soon as something differs. A look that kubectl could not take is repeated.
func stay(k *kubectl, duration time.Duration, want string, look func() string) {
	k.Helper()
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		var got string
		k.eventually(func() string {
			got = look()
			return ""
		})
		if got != want {
			k.Fatalf("children changed:\nbefore %s\nafter  %s", want, got)
		}
	}
}

func TestControllerContinuesAfterRestart(t *testing.T) {
	k := newKubectl(t)
	if err := shared.Script("stop", "controller"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Script("start", "controller"); err != nil {
			t.Error(err)
		}
	})
	k.okIn(manifest("train", runShort), "apply", "-f", "-")
	if got := k.ok("get", "jobs", "-o", "name"); got != "" {
		t.Errorf("Jobs without a controller: %s", got)
	}
	if err := shared.Script("start", "controller"); err != nil {
		t.Fatal(err)
	}
	k.wait("--for=condition=Completed", "jobset/train")
	if got := k.ok("get", "jobs", "-o", "name"); strings.Count(got, "\n") != 2 {
		t.Errorf("Jobs after completion: %s", got)
	}
}
