// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleaseOfChanges checks that hack/images.sh makes no release of a tree with changes, and names them.
func TestReleaseOfChanges(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "hack", "images.sh")
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, script, readFile(t, "..", "images.sh"))
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "First"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	writeFile(t, filepath.Join(dir, "forgotten.go"), "")
	expect := func(want string, args ...string) {
		t.Helper()
		cmd := exec.Command("bash", append([]string{script}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "VERSION=v1.2.3"}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, printed %q, want %q", args, err, out, want)
		}
	}
	expect("make release: the tree has changes that are not in the commit; commit, stash or remove them:\n?? forgotten.go\n", "release")
	expect("make install-from-source: a registry is required, which the nodes can pull from: REGISTRY=registry.example.com/team", "install")
	expect("the command must be build, push, plugin, chart, release, verify, publish or install, is pull", "pull")
}
