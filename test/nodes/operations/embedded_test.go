// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// useCluster makes a new cluster the shared one until the test ends. It has no installation.
func useCluster(t *testing.T, dir string, settings []string) {
	t.Helper()
	c, err := localcluster.New(dir, "", settings...)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(!t.Failed()); err != nil {
			t.Error(err)
		}
	})
	before := shared
	t.Cleanup(func() {
		shared = before
		if err := connect(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Script("up"); err != nil {
		t.Fatal(err)
	}
	shared = c
	if err := connect(); err != nil {
		t.Fatal(err)
	}
}

// installEmbedded installs one server with its embedded store. The volume of the store moves with the pod.
func installEmbedded(t *testing.T) {
	t.Helper()
	// The volume that the cluster comes with stays on its node.
	if err := core.CoreV1().PersistentVolumes().Delete(t.Context(), "store", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	must(t, "apply", "--server-side", "-k", filepath.Join(shared.Root, "artifacts", "base", "rbac"))
	if err := volume(t.Context(), "data-jobset-apiserver-0"); err != nil {
		t.Fatal(err)
	}
	if err := deploy(t.Context(), "overlays/embedded"); err != nil {
		t.Fatal(err)
	}
}

// TestEmbeddedServerIsDrained drains the node of the only server. Nothing answers until the server runs on the other
// node; nothing is lost, and the sets go on.
func TestEmbeddedServerIsDrained(t *testing.T) {
	if !everything() {
		return
	}
	useCluster(t, ".cluster-nodes-embedded", settings)
	installEmbedded(t)
	w := newWorkload(t)
	observe(t, "drain of the node of the only server", false, func(s *steps) {
		for _, node := range s.pods(serverPods) {
			s.drain(node)
			s.installationReady()
			w.ready(s)
			s.reached("the sets run on the other node")
		}
		if restarts := w.set(s).Status.Restarts; restarts != 1 {
			s.Errorf("the set was restarted %d times, want once", restarts)
		}
	})
}
