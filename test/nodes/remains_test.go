// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// TestKilledStartLeavesNothing kills the start of a cluster when its node has begun to run, and then takes it down.
func TestKilledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	c := &localcluster.Cluster{
		Root: shared.Root, Dir: filepath.Join(shared.Root, ".cluster-nodes-killed"), Env: []string{"CLUSTER_REAL_NODES=1", "CLUSTER_NODES=0", "CLUSTER_COMPONENTS=none"},
	}
	down := func() {
		if err := c.Stop(true); err != nil {
			t.Error(err)
		}
	}
	down()
	t.Cleanup(down)
	before, err := localcluster.Networks()
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(filepath.Join(c.Root, "hack", "cluster.sh"), "up")
	cmd.Env = append(append(os.Environ(), "CLUSTER_DIR="+c.Dir), c.Env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	framework.EventuallyNoProblem(t, func() string {
		if _, err := os.Stat(filepath.Join(c.Dir, "pids", "real-1-kubelet.pid")); err != nil {
			return err.Error()
		}
		return ""
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	down()

	if err := nothingRemains(c); err != nil {
		t.Error(err)
	}
	after, err := localcluster.Networks()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, after) {
		t.Errorf("networks before %v, after %v", before, after)
	}
}
