// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// unsearched is this package, which has the words that it looks for.
const unsearched = "test/docs"

// longPackages run with `make long` only, all of their tests.
var longPackages = []string{"test/nodes", "test/peers", "test/helm", "test/dns", "test/upgrade", "test/matrix", "test/bench", "test/hostile"}

// inTheGate are tests of the gate with a program that they stop although their suite shares it: each kind of fault has one there. Others only look
// as if they needed a machine with time to spare.
var inTheGate = map[string]string{
	"test/e2e.TestControllerContinuesAfterRestart":    "the one restart of the controller; runs last and alone",
	"test/faults.TestControllerKilledAtAnyWrite":      "nothing is created twice, with a fixed seed",
	"test/loss.TestWrongStoresLoseNothing":            "one wrong store",
	"test/e2e.TestServerSideApplyTwiceChangesNothing": "waits until a status rests",
	"test/e2e.TestClientSideApplyAndDiff":             "waits until a status rests",
	"test/e2e.TestWhyOfSteadyStates":                  "takes those causes from the table of all that stop nothing, which it checks",
	"test/integration/apiserver.TestInvalidTokens":    "a slower machine may ask more often",
	"test/localcluster.TestClusterWithLateDeletions":  "starts a script that only writes down how it was called",
}

// longestSleep is the longest time for which a test of the gate may sleep.
const longestSleep = 5 * time.Second

// TestLongTestsAreOnRequest looks for tests of the gate that need a machine with time to spare, or break what others share. They start a cluster, stop a
// program, sleep for long, compare wall times, or read resident memory, and do not begin with tier.OnRequest.
func TestLongTestsAreOnRequest(t *testing.T) {
	tests, found := 0, map[string]bool{}
	for _, dir := range testPackages(t) {
		p := parseTests(t, filepath.Join(root, dir))
		for _, test := range p.tests {
			tests++
			if p.onRequest(test) {
				continue
			}
			name := dir + "." + test
			for _, what := range p.slow(test, map[string]bool{}) {
				found[name] = true
				if inTheGate[name] == "" {
					t.Errorf("%s %s: begin it with tier.OnRequest, or mend it as docs/development.md#tiers describes", name, what)
				}
			}
		}
	}
	if tests < 2000 {
		t.Errorf("%d tests were found, want at least 2000, or the search has stopped working", tests)
	}
	for name := range inTheGate {
		if !found[name] {
			t.Errorf("%s is an exception and need not be one", name)
		}
	}
}

// TestSlowTestsAreRecognized shows that the rule above finds what it looks for, and nothing else.
func TestSlowTestsAreRecognized(t *testing.T) {
	for body, want := range map[string]string{
		`startCluster(t, "x")`:                                    "starts a cluster",
		`ownCluster("x").Run()`:                                   "starts a cluster",
		`gated.use(t)`:                                            "starts a cluster",
		`c := &localcluster.Cluster{}; c.Run()`:                   "starts a cluster",
		`framework.Start(ctx)`:                                    "starts a cluster",
		`etcdcluster.Start(ctx, "etcd", dir, 3)`:                  "starts a cluster",
		`k.cluster.Script("up")`:                                  "starts a cluster",
		`k.cluster.Script("stop", "apiserver")`:                   "stops a program of the cluster",
		`for _, f := range faults { f(t) }`:                       "stops a program of the cluster",
		`time.Sleep(2 * 3 * time.Second)`:                         "sleeps for 6s",
		`time.Sleep(time.Minute)`:                                 "sleeps for 1m0s",
		`time.Sleep(outage)`:                                      "sleeps for 10s",
		`time.Sleep(pause())`:                                     "sleeps for 7s",
		`<-time.After(8 * time.Second)`:                           "sleeps for 8s",
		`const long = 9 * time.Second; time.Sleep(long)`:          "sleeps for 9s",
		`stay(t, 15*time.Second)`:                                 "sleeps for 15s",
		`rest(15*time.Second)`:                                    "sleeps for 15s",
		`helper(t)`:                                               "sleeps for 5s",
		`bubble(t, func() {}); helper(t)`:                         "sleeps for 5s",
		`if time.Since(start) > limit { t.Fail() }`:               "compares a wall time",
		`took := time.Since(start); if took > limit { t.Fail() }`: "compares a wall time",
		`took := time.Now().Sub(start).Seconds(); if 1+took > limit { t.Fail() }`: "compares a wall time",
		`p.AnonymousPeak(t)`:                 "reads resident memory",
		`s.memory(t, "VmHWM")`:               "reads resident memory",
		`strings.Cut(status, "VmRSS:")`:      "reads resident memory",
		`time.Sleep(100 * time.Millisecond)`: "",
		`stay(t, time.Second)`:               "",
		`select { case <-done: case <-time.After(time.Minute): t.Fatal() }`: "",
		`synctest.Test(t, func() { helper(t) })`:                            "",
		`bubble(t, func() { helper(t) })`:                                   "",
		`outage := 1; use(outage)`:                                          "",
		`t.Logf("after %s", time.Since(start))`:                             "",
		`k.cluster.Script("kubectl", "apply", "stop")`:                      "",
		`k.cluster.Script("start", "controller")`:                           "",
	} {
		t.Run(body, func(t *testing.T) {
			dir := t.TempDir()
			source := "package x\nfunc TestX(t *testing.T) {\n" + body + "\n}\n" + helpersOfSlowTests
			if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o644); err != nil {
				t.Fatal(err)
			}
			p := parseTests(t, dir)
			if got := strings.Join(p.slow("TestX", map[string]bool{}), ", "); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
			if p.onRequest("TestX") {
				t.Error("the test is on request, want not")
			}
		})
	}
}

const helpersOfSlowTests = `
const outage = 10 * time.Second
var faults = []func(*testing.T){without("apiserver")}
func without(program string) func(*testing.T) { return func(t *testing.T) { shared.Script("stop", program) } }
func pause() time.Duration { if all { return 7 * time.Second }; return time.Second }
func helper(t *testing.T) { time.Sleep(5 * time.Second) }
func bubble(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }
func rest(d time.Duration) { time.Sleep(d) }
func stay(t *testing.T, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); { look() }
}
`

// testPackages returns the directories with tests that run in the gate.
func testPackages(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, top := range []string{"pkg", "cmd", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			dir, err := filepath.Rel(root, filepath.Dir(path))
			inLong := func(long string) bool { return dir == long || strings.HasPrefix(dir, long+"/") }
			if dir != unsearched && !slices.Contains(dirs, dir) && !slices.ContainsFunc(longPackages, inLong) {
				dirs = append(dirs, dir)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}
