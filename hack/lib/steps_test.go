// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lib_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runSteps runs a script with the functions of steps.sh, and returns what it prints, without the seconds, and its log.
func runSteps(t *testing.T, script string) (out, errOut, log string, err error) {
	t.Helper()
	library, err := filepath.Abs("steps.sh")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "output", "steps.log")
	command := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\nsource \"$1\"\nsteps::begin 2 \"$2\"\n"+script, "bash", library, file)
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	content, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	seconds := regexp.MustCompile(`\b\d+s\n`)
	return seconds.ReplaceAllString(stdout.String(), "Ns\n"), strings.ReplaceAll(stderr.String(), file, "LOG"), string(content), err
}

func TestStepsPrintOneLineEach(t *testing.T) {
	out, errOut, log, err := runSteps(t, `
steps::run "downloading modules" bash -c 'echo go: downloading one; echo go: downloading two >&2'
steps::run "building" echo built
`)
	if err != nil {
		t.Fatalf("%v\n%s", err, errOut)
	}
	if diff := cmp.Diff("1 of 2: downloading modules ... Ns\n2 of 2: building ... Ns\n", out); diff != "" || errOut != "" {
		t.Errorf("printed (-want +got):\n%s\nand on the standard error %q", diff, errOut)
	}
	if diff := cmp.Diff("go: downloading one\ngo: downloading two\nbuilt\n", log); diff != "" {
		t.Errorf("the log differs (-want +got):\n%s", diff)
	}
}

// TestStepThatFails has the second of two steps fail with more output than is shown. Nothing is shown of the first one.
func TestStepThatFails(t *testing.T) {
	out, errOut, _, err := runSteps(t, `
steps::run "first" echo fine
steps::run "second" bash -c 'seq 1 30; exit 3'
echo not reached
`)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
		t.Fatalf("the script ended with %v: want the exit code of the step, 3", err)
	}
	if diff := cmp.Diff("1 of 2: first ... Ns\n2 of 2: second ... failed after Ns\n", out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	var want strings.Builder
	for n := 11; n <= 30; n++ {
		fmt.Fprintln(&want, n)
	}
	if diff := cmp.Diff(want.String()+"all output is in LOG\n", errOut); diff != "" {
		t.Errorf("printed on the standard error (-want +got):\n%s", diff)
	}
}
