// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// mode is the variable that makes the test binary of this package a suite of TestOne and TestTwo.
const mode = "SUITE_MODE"

func TestMain(m *testing.M) {
	if os.Getenv(mode) == "suite" {
		Main("example", func() (int, error) { return Run(context.Background(), m) })
	}
	os.Exit(m.Run())
}

func TestOne(t *testing.T) { t.Run("sub", func(*testing.T) {}) }

func TestTwo(t *testing.T) { t.Skip("tests that are skipped count") }

// example runs the test binary with the flags, and returns whether it succeeded, whether a test ran, and the output.
func example(t *testing.T, value string, args ...string) (succeeded, ran bool, out string) {
	t.Helper()
	if os.Getenv(mode) != "" {
		t.Skip("this process is the example")
	}
	cmd := exec.Command(os.Args[0], append([]string{"-test.v"}, args...)...)
	cmd.Env = append(os.Environ(), mode+"="+value)
	output, err := cmd.CombinedOutput()
	if exit := (&exec.ExitError{}); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("%v\n%s", err, output)
	}
	return err == nil, strings.Contains(string(output), "=== RUN"), string(output)
}

// A suite succeeds only if a test runs. The testing package decides which one, so each case also runs without the suite.
func TestSuiteNeedsTest(t *testing.T) {
	for want, cases := range map[bool][][]string{
		true: {
			nil, {"-test.run=TestOne"}, {"-test.run=^TestTwo$"}, {"-test.run=^(TestOne|TestTwo)$"}, {"-test.run=TestNone|TestTwo"},
			{"-test.run=TestOne/none"}, {"-test.run=(TestOne/x|TestOne)"}, {"-test.run=Test[/|O]ne"}, {"-test.run=^$|One"}, {"-test.run="},
			{"-test.run=TestO(n|x)e$/a|none"},
			{"-test.run=^Test", "-test.skip=TestOne"}, {"-test.run=One", "-test.skip=TestOne/sub"},
			{"-test.run=One", "-test.skip=TestOne/sub|TestOne"}, {"-test.run=One", "-test.skip=[|]"},
		},
		false: {
			{"-test.run=^$"}, {"-test.run=TestNone"}, {"-test.run=^(TestOn|TestTw)$"}, {"-test.run=One", "-test.skip=TestOne"},
			{"-test.skip=."}, {"-test.run=One", "-test.skip=TestOne|TestOne/sub"}, {"-test.run=One", "-test.skip=none|One"},
			{`-test.run=TestOne\|TestTwo`}, {`-test.run=x/TestOne`},
			{"-test.run=TestOne ", "-test.skip=^$"}, {"-test.run=[x"}, {"-test.run=[]|]|One"},
		},
	} {
		for _, args := range cases {
			succeeded, _, out := example(t, "suite", args...)
			_, ran, plain := example(t, "plain", args...)
			if succeeded != want || ran != want {
				t.Errorf("%q: the suite succeeds: %t, a test runs: %t, want %t\n%s\n%s", args, succeeded, ran, want, out, plain)
			}
		}
	}
	if _, _, out := example(t, "suite", "-test.run=^$"); !strings.Contains(out, `example: none of the `) {
		t.Errorf("got %q", out)
	}
}

// What is no run of tests goes on without one.
func TestSuiteLists(t *testing.T) {
	for _, args := range [][]string{{"-test.list=One"}, {"-test.run=^$", "-test.bench=."}} {
		if succeeded, ran, out := example(t, "suite", args...); !succeeded || ran {
			t.Errorf("%q: %s", args, out)
		}
	}
}

func TestUnknownLayoutIsRefused(t *testing.T) {
	for _, m := range []any{struct{}{}, &struct{ tests []string }{}} {
		if names, err := testNames(m); err == nil {
			t.Errorf("%T has tests %q", m, names)
		}
	}
}

func TestPackageWithoutTests(t *testing.T) {
	if err := anySelected(nil, "", ""); err == nil {
		t.Error("succeeds")
	}
}
