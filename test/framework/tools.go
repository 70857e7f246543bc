// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"
)

// Kubectl runs kubectl as an administrator of the main cluster and returns what it wrote to both streams.
func (p *ControlPlane) Kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	kubeconfig, err := p.Kubeconfig("kubectl", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	// With a cache of its own: groups come and go here, and some commands of kubectl never ask again for what is in the cache.
	args = append([]string{"--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, args...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(p.binaries, "kubectl"), args...)
	cmd.Dir = p.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Kustomize builds manifests of this repository.
func (p *ControlPlane) Kustomize(t *testing.T, dir string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(p.binaries, "kustomize"), "build", dir)
	cmd.Dir = p.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("building %s: %v: %s", dir, err, stderr.String())
	}
	return out
}
