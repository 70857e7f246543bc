// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReleaseOfChanges checks that hack/images.sh makes no release of a tree with changes, and names them.
func TestReleaseOfChanges(t *testing.T) {
	dir, script := scriptInTree(t)
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

// scriptInTree copies hack/images.sh into a tree with one commit.
func scriptInTree(t *testing.T) (dir, script string) {
	t.Helper()
	dir = t.TempDir()
	script = filepath.Join(dir, "hack", "images.sh")
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, script, readFile(t, "..", "images.sh"))
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "First"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir, script
}

// TestInstallFromSource checks what hack/images.sh runs: all steps use one directory. test/helm installs in a cluster.
func TestInstallFromSource(t *testing.T) {
	tests := map[string]struct{ output, images, manifests string }{
		"the default directory": {"", "_output/images", "_output/install.yaml"},
		"another directory":     {"elsewhere/images", "elsewhere/images", "elsewhere/install.yaml"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			dir, script := scriptInTree(t)
			bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			for _, program := range []string{"go", "kubectl"} {
				record := "#!/bin/sh\necho " + program + ` "$@" >>` + log + "\n"
				if err := os.WriteFile(filepath.Join(bin, program), []byte(record), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("bash", script, "install")
			cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "VERSION=v1.2.3", "REVISION=" + commit, "SOURCE_DATE_EPOCH=1",
				"LDFLAGS=-s", "PLATFORMS=linux/amd64", "REGISTRY=r.example.com/team", "PLAIN_HTTP=true"}
			if test.output != "" {
				cmd.Env = append(cmd.Env, "OUTPUT="+filepath.Join(dir, test.output))
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			const program = "go run -C hack/images -trimpath -buildvcs=false . "
			images, manifests := filepath.Join(dir, test.images), filepath.Join(dir, test.manifests)
			want := program + "build --source " + dir + " --version v1.2.3 --revision " + commit + " --created 1 --ldflags -s --output " + images +
				" --registry r.example.com/team --platforms linux/amd64\n" +
				program + "push --output " + images + " --registry r.example.com/team --plain-http=true\n" +
				program + "render --source " + dir + " --images " + images + " --registry r.example.com/team --overlay embedded --output " + manifests + "\n" +
				"kubectl apply --server-side -f " + manifests + "\n"
			if diff := cmp.Diff(want, readFile(t, log)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}
