// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// steady returns the output with words for times and numbers of lines.
func steady(out string) string {
	out = regexp.MustCompile(`_test\.go:\d+`).ReplaceAllString(out, "_test.go:LINE")
	return regexp.MustCompile(`\d+\.\d+s`).ReplaceAllString(out, "TIME")
}

func TestRunAndAgain(t *testing.T) {
	inModule(t)
	for name, test := range map[string]struct {
		args []string
		run  int
		// printed is the whole output of the run.
		printed string
		again   int
		// summary is the end of the output of the repetition.
		summary string
	}{
		"all passes": {
			args: []string{"./passes/...", "./skipped"},
			printed: "ok  \texample.com/tests/passes\tTIME\n?   \texample.com/tests/passes/code\t[no test files]\n" +
				"ok  \texample.com/tests/skipped\tTIME\n",
			summary: "tests: 1 passed, 2 skipped, 0 repeated, 0 flaky; nothing is to be repeated\n",
		},
		"a flaky test": {
			args: []string{"./flaky", "./passes"},
			printed: "--- FAIL: TestFlaky (TIME)\n    --- FAIL: TestFlaky/a/sub_test (TIME)\n        flaky_test.go:LINE: flaky the first time,\n" +
				"            with a second line\nFAIL\texample.com/tests/flaky\tTIME\nok  \texample.com/tests/passes\tTIME\n" +
				"failed, repeated at the end: example.com/tests/flaky.TestFlaky: flaky_test.go:LINE: flaky the first time,\n",
			summary: "ok  \texample.com/tests/flaky\tTIME\ntests: 3 passed, 1 skipped, 1 repeated, 1 flaky\n" +
				"flaky: example.com/tests/flaky.TestFlaky: flaky_test.go:LINE: flaky the first time,\n",
		},
		"a test that fails twice": {
			args: []string{"./twice"},
			printed: "--- FAIL: TestTwice (TIME)\n    twice_test.go:LINE: fails always\nFAIL\texample.com/tests/twice\tTIME\n" +
				"failed, repeated at the end: example.com/tests/twice.TestTwice: twice_test.go:LINE: fails always\n",
			again: 1,
			summary: "tests: 0 passed, 0 skipped, 1 repeated, 0 flaky\n" +
				"failed: example.com/tests/twice.TestTwice: twice_test.go:LINE: fails always\n",
		},
		"a test that is skipped the second time": {
			args: []string{"./vanishes"},
			printed: "--- FAIL: TestVanishes (TIME)\n    vanishes_test.go:LINE: fails\nFAIL\texample.com/tests/vanishes\tTIME\n" +
				"failed, repeated at the end: example.com/tests/vanishes.TestVanishes: vanishes_test.go:LINE: fails\n",
			again: 1,
			summary: "tests: 0 passed, 1 skipped, 1 repeated, 0 flaky\n" +
				"failed: example.com/tests/vanishes.TestVanishes: vanishes_test.go:LINE: fails (did not run the second time)\n",
		},
		"the cluster does not start": {
			args: []string{"./start"},
			printed: "starting\nsuite: the cluster did not start\nFAIL\texample.com/tests/start\tTIME\n" +
				"failed, repeated at the end: example.com/tests/start: suite: the cluster did not start\n",
			summary: "tests: 1 passed, 0 skipped, 1 repeated, 1 flaky\nflaky: example.com/tests/start: suite: the cluster did not start\n",
		},
		"the cluster does not stop": {
			args: []string{"./stop"},
			printed: "suite: the cluster did not stop\nFAIL\texample.com/tests/stop\tTIME\n" +
				"tests passed, but stopping failed: example.com/tests/stop: suite: the cluster did not stop\n",
			summary: "tests: 1 passed, 0 skipped, 0 repeated, 0 flaky; nothing is to be repeated\n" +
				"tests passed, but stopping failed: example.com/tests/stop: suite: the cluster did not stop\n",
		},
		"a test of safety": {
			args: []string{"./safety"}, run: 1,
			printed: "--- FAIL: TestSafety (TIME)\n    --- FAIL: TestSafety/sub (TIME)\n        safety_test.go:LINE: lost a write\n" +
				"FAIL\texample.com/tests/safety\tTIME\n" +
				"failed: example.com/tests/safety.TestSafety, a test of safety: safety_test.go:LINE: lost a write\n",
			again: 1,
			summary: "tests: 0 passed, 0 skipped, 0 repeated, 0 flaky\n" +
				"failed: example.com/tests/safety.TestSafety, a test of safety: safety_test.go:LINE: lost a write\n",
		},
		"all tests are skipped": {
			args: []string{"./skipped"}, again: 1,
			summary: "tests: 0 passed, 1 skipped, 0 repeated, 0 flaky; nothing is to be repeated\nfailed: no test passed\n",
		},
		"a word of success beside a test that fails": {
			args: []string{"./claims", "./passes"}, again: 1,
			summary: "tests: 1 passed, 1 skipped, 1 repeated, 0 flaky\n" +
				"failed: example.com/tests/claims.TestClaims: claims_test.go:LINE: fails\n",
		},
		"four flaky tests": {
			args:  []string{"./four"},
			again: 1,
			summary: "tests: 4 passed, 0 skipped, 4 repeated, 4 flaky\nfailed: 4 tests are flaky, and at most 3 may be\n" +
				"flaky: example.com/tests/four.TestA: four_test.go:LINE: flaky\nflaky: example.com/tests/four.TestB: four_test.go:LINE: flaky\n" +
				"flaky: example.com/tests/four.TestC: four_test.go:LINE: flaky\nflaky: example.com/tests/four.TestD: four_test.go:LINE: flaky\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			code, out := g.run(t, test.args...)
			if out = steady(out); code != test.run || test.printed != "" && out != test.printed {
				t.Errorf("run exits with %d and prints\n%s\nwant %d and\n%s", code, out, test.run, test.printed)
			}
			code, out = g.again(t)
			if out = steady(out); code != test.again || !strings.HasSuffix(out, test.summary) {
				t.Errorf("again exits with %d and prints\n%s\nwant %d and the end\n%s", code, out, test.again, test.summary)
			}
			content, err := os.ReadFile(g.log)
			if logged := strings.Count(string(content), " flaky: "); logged != strings.Count(test.summary, "\nflaky: ") {
				t.Errorf("%d tests are in the log (%v):\n%s", logged, err, content)
			}
		})
	}
}

// Nothing of these may become green by repeating it, even if it passes the second time.
func TestRedAtOnce(t *testing.T) {
	inModule(t)
	g := newGate(t)
	code, out := g.run(t, "./panics", "./exits", "./broken", "./untested", "./startpanics", "./passes", "./twice",
		"./killed", "./quits", "./ignores", "./announces")
	if code != 1 {
		t.Errorf("exits with %d", code)
	}
	for _, want := range []string{
		"failed: example.com/tests/panics: the test binary ended before its tests: panic: out of range",
		"failed: example.com/tests/exits: the test binary ended before its tests: ",
		"failed: example.com/tests/broken: did not compile\n",
		"failed: example.com/tests/untested: passed without running a test\n",
		"failed: example.com/tests/startpanics: panic: no cluster",
		"failed: example.com/tests/killed: the test binary ended before its tests: ",
		"failed: example.com/tests/quits: the test binary ended before its tests: ",
		"failed: example.com/tests/ignores: the test binary exited with 0 although TestIgnored failed\n",
		"failed: example.com/tests/announces: the test binary ended before its tests: ",
		"failed, not repeated: example.com/tests/twice.TestTwice",
		"ok  \texample.com/tests/passes",
		"t.Unknown undefined",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
	code, out = g.again(t)
	if code != 1 || !strings.HasPrefix(out, "tests: 2 passed") || strings.Count(out, "\nfailed: ") != 10 {
		t.Errorf("again exits with %d and prints\n%s", code, out)
	}
}

func TestTimeout(t *testing.T) {
	inModule(t)
	g := newGate(t)
	code, out := g.run(t, "-timeout", "1s", "./slow")
	if code != 1 || !strings.Contains(out, "\nfailed: example.com/tests/slow: ") ||
		strings.Count(out, "panic: test timed out after 1s\n") != 2 {
		t.Errorf("exits with %d and prints\n%s", code, out)
	}
}

func TestRunNeedsTests(t *testing.T) {
	inModule(t)
	for name, args := range map[string][]string{
		"no test matches":                     {"-run", "^$", "./unfiltered"},
		"no package matches":                  {"./none/..."},
		"no package matches beside others":    {"./passes", "./none/..."},
		"no package with tests beside others": {"./passes", "./passes/code/..."},
		"no such package":                     {"./none"},
		"tests are only listed":               {"-list=.", "./passes"},
		"another program runs":                {"-exec=true", "./passes"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, out := newGate(t).run(t, args...); code != 1 || !strings.Contains("\n"+out, "\nfailed: ") {
				t.Errorf("exits with %d and prints\n%s", code, out)
			}
		})
	}
}

// All runs of a gate together may have five failures.
func TestManyFailures(t *testing.T) {
	inModule(t)
	g := newGate(t)
	if code, out := g.run(t, "./four", "./twice"); code != 0 {
		t.Errorf("five failures: exits with %d and prints\n%s", code, out)
	}
	beside := newGate(t)
	if code, out := beside.run(t, "./start"); code != 0 {
		t.Errorf("a run beside it: exits with %d and prints\n%s", code, out)
	}
	content, err := os.ReadFile(g.state)
	if err == nil {
		err = appendTo(beside.state, string(content))
	}
	if err != nil {
		t.Fatal(err)
	}
	code, out := beside.again(t)
	if code != 1 || strings.Contains(out, "repeating") || !strings.Contains(out, "\nfailed: 6 tests failed, and at most 5 may fail") {
		t.Errorf("six failures of two runs at the same time: again exits with %d and prints\n%s", code, out)
	}
	if code, out := g.run(t, "./start"); code != 1 || !strings.Contains(out, "failed: 6 tests failed, and at most 5 may fail") {
		t.Errorf("six failures: exits with %d and prints\n%s", code, out)
	}
	if code, out := g.again(t); code != 1 || strings.Contains(out, "repeating") || strings.Count(out, "\nfailed: ") != 7 {
		t.Errorf("again exits with %d and prints\n%s", code, out)
	}
}

// A go test that is killed runs no more packages.
func TestKilledGoTest(t *testing.T) {
	inModule(t)
	g := newGate(t)
	if code, out := g.run(t, "./flaky", "./killer", "./passes"); code != 1 || !strings.Contains(out, "\nfailed: go test: signal: killed\n") {
		t.Errorf("exits with %d and prints\n%s", code, out)
	}
	if code, out := g.again(t); code != 1 || strings.Contains(out, "repeating") {
		t.Errorf("again exits with %d and prints\n%s", code, out)
	}
}

// Runs whose state is gone may have failed.
func TestAgainWithoutState(t *testing.T) {
	g := newGate(t)
	code, out := g.again(t)
	want := "tests: 0 passed, 0 skipped, 0 repeated, 0 flaky; nothing is to be repeated\nfailed: no run of tests is in " + g.state + "\n"
	if code != 1 || out != want {
		t.Errorf("exits with %d and prints %q, want %q", code, out, want)
	}
}

func TestInterrupt(t *testing.T) {
	inModule(t)
	g := newGate(t)
	go func() {
		for range 6000 {
			if _, err := os.Stat(filepath.Join(g.markers, "ready")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	code, out := g.run(t, "./interrupted")
	if code != 1 || !strings.Contains(out, "failed: interrupted\n") {
		t.Errorf("exits with %d and prints\n%s", code, out)
	}
	if _, err := os.Stat(filepath.Join(g.markers, "cleaned")); err != nil {
		t.Errorf("the test did not clean up: %v\n%s", err, out)
	}
}
