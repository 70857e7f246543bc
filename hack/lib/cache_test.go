// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lib_test tests what the scripts in hack/ share.
package lib_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsAreBuiltIntoTheCache builds two modules: the main package of one, with a name of its own and beside
// others, and only the main package of the other.
func TestProgramsAreBuiltIntoTheCache(t *testing.T) {
	cacheSh, err := filepath.Abs("cache.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, content := range map[string]string{
		"several/go.mod":            "module example.com/several\n\ngo 1.24\n",
		"several/go.sum":            "",
		"several/main.go":           "package main\n\nfunc main() { println(\"main package\") }\n",
		"several/cmd/other/main.go": "package main\n\nfunc main() { println(\"other package\") }\n",
		"several/server/v3/main.go": "package main\n\nfunc main() { println(\"major version\") }\n",
		"single/go.mod":             "module example.com/a/single/v2\n\ngo 1.24\n",
		"single/go.sum":             "",
		"single/main.go":            "package main\n\nfunc main() { println(\"single package\") }\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Scripts have constants of their own.
	const script = `set -euo pipefail
source "$1"
readonly packages= programs= version=
ldflags() { echo "-s -w"; }
list="
several .                             greeter
several example.com/several/cmd/other other
several example.com/several/server/v3 third
single  .                             alone
"
[[ ! -e "${JOBSET_APISERVER_CACHE}" ]] || before=1
cache::download "${list}"
[[ -n "${before:-}" || ! -e "${JOBSET_APISERVER_CACHE}" ]] || echo "downloading builds programs"
cache::ensure "test" "${list}"`
	build := func() string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "bash", "-c", script, "bash", cacheSh)
		command.Dir = dir
		command.Env = append(os.Environ(), "JOBSET_APISERVER_CACHE="+filepath.Join(dir, "cache"))
		var progress strings.Builder
		command.Stderr = &progress
		directory, err := command.Output()
		if err != nil {
			t.Fatalf("building failed: %v\n%s", err, progress.String())
		}
		return strings.TrimSpace(string(directory))
	}
	directory := build()
	for program, want := range map[string]string{"greeter": "main package", "other": "other package", "third": "major version", "alone": "single package"} {
		output, err := exec.CommandContext(t.Context(), filepath.Join(directory, program)).CombinedOutput()
		if got := strings.TrimSpace(string(output)); err != nil || got != want {
			t.Errorf("%s printed %q (%v), want %q", program, got, err, want)
		}
	}
	if again := build(); again != directory {
		t.Errorf("the second time, programs are in %s, not in %s", again, directory)
	}
}
