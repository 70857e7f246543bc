// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ImportImage makes the images of an archive known to a real node.
func (c *Cluster) ImportImage(node, archive string) error {
	socket := filepath.Join(c.Dir, node, "state", "containerd.sock")
	if out, err := exec.Command("ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", archive).CombinedOutput(); err != nil {
		return fmt.Errorf("importing %s on %s: %w: %s", archive, node, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// WriteImage writes an archive of an image with one static program at that path, which is also what its containers run.
func WriteImage(archive, program, path, reference string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	image, err := imageOf(content, path, reference)
	if err != nil {
		return err
	}
	return os.WriteFile(archive, image, 0o644)
}

// LoseNode ends everything that runs on a real node with SIGKILL, as a loss of power does: its kubelet and containerd first, so that no
// program reports or cleans up. The command up of the script brings the node back.
func (c *Cluster) LoseNode(node string) error {
	dir := filepath.Join(c.Dir, node)
	of := &supervisor{settings: settings{dir: dir}, processes: processes{base: dir}}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		pids := append(of.all(), of.contained()...)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of %s do not end", pids, node)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
