// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lib_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeGate stands for hack/gate.sh: the second call has a flaky test, which is shown twice, and the fourth one fails. It notes which loads run.
const fakeGate = `#!/bin/bash
echo "$* $GO_TEST_FLAGS" >>_output/calls
calls=$(wc -l <_output/calls)
ls -d _output/stress/tmp.* >>_output/busy 2>/dev/null
case $calls in
2) echo "flaky: e2e.TestA (round 1: late)"; echo "flaky: e2e.TestA (round 1: late)" ;;
4) echo "--- FAIL: TestB"; exit 1 ;;
esac
`

// stressed is a checkout with hack/stress.sh and the fake gate.
func stressed(t *testing.T) (stress func(args ...string) (string, error), read func(name string) string) {
	t.Helper()
	root, cache := t.TempDir(), t.TempDir()
	for _, name := range []string{"stress.sh", "green.sh", "lib/cache.sh"} {
		content, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "hack", name), string(content))
	}
	write(t, filepath.Join(root, "hack", "gate.sh"), fakeGate)
	write(t, filepath.Join(root, ".gitignore"), "_output\n")
	run := func(name string, args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir, command.Env = root, append(os.Environ(), "JOBSET_APISERVER_CACHE="+cache, "GO_TEST_FLAGS=-v -short")
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := run("git", "init", "-q"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args ...string) (string, error) { return run("hack/stress.sh", args...) }, func(name string) string {
		content, err := os.ReadFile(strings.Replace(filepath.Join(root, name), filepath.Join(root, "CACHE"), cache, 1))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestStressAddsUp runs four rounds in two calls.
func TestStressAddsUp(t *testing.T) {
	stress, read := stressed(t)
	if out, err := stress("unit", "3"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := stress("unit", "1")
	if err == nil {
		t.Error("no error although a round was red")
	}
	for _, want := range []string{"--- FAIL: TestB", "unit:-v,-short  idle  3       1    0", "unit:-v,-short  busy  1       0    1"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if diff := cmp.Diff(strings.Repeat("unit -count=1 -v -short\n", 4), read("_output/calls")); diff != "" {
		t.Errorf("calls of the gate (-want +got):\n%s", diff)
	}
	if got := strings.Count(read("_output/busy"), "\n"); got != 1 {
		t.Errorf("%d rounds were beside a load, want 1", got)
	}
	lines := regexp.MustCompile(`(?m)^[0-9a-f]{40} \S+Z (\S+ \S+) \d+ (.*?) ?$`).ReplaceAllString(read("CACHE/rounds"), "$1: $2")
	want := "unit idle: green 0\nunit busy: green 1 e2e.TestA\nunit idle: green 0\nunit idle: red 0\n"
	want = strings.ReplaceAll(want, "unit", "unit:-v,-short")
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("rounds (-want +got):\n%s", diff)
	}
	sums, err := stress("--sums")
	if err != nil || !strings.HasSuffix(out, sums) {
		t.Errorf("sums: %v\n%s", err, sums)
	}
}

func TestStressRefusesWrongArguments(t *testing.T) {
	stress, _ := stressed(t)
	for args, want := range map[string]string{
		"e2e":    "unknown argument e2e; must be unit, gate, all or --sums",
		"unit 0": "the number of rounds must be a positive number, not 0",
	} {
		if out, err := stress(strings.Fields(args)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %q, want %q", args, err, out, want)
		}
	}
}
