// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestOnce runs tests without repeating any. What is green with `go test` although tests did not run, or failed, is red.
func TestOnce(t *testing.T) {
	inModule(t)
	const passes = "ok  \texample.com/tests/passes\tTIME\n"
	for name, test := range map[string]struct {
		args    []string
		code    int
		printed string
	}{
		"all passes":                            {[]string{"./passes"}, 0, passes},
		"a test that ends the program with 0":   {[]string{"./passes", "./quits"}, 1, "failed: example.com/tests/quits: the test binary ended before its tests: no message\n"},
		"a failure that the program ignores":    {[]string{"./ignores"}, 1, "failed: example.com/tests/ignores: the test binary exited with 0 although TestIgnored failed\n"},
		"a package with files, but no test":     {[]string{"./passes", "./untested"}, 1, "failed: example.com/tests/untested: passed without running a test\n"},
		"tests that are not selected":           {[]string{"-run", "TestPasses", "./passes", "./unfiltered"}, 0, "[no tests to run]\n"},
		"no test is selected":                   {[]string{"-run=TestNone", "./passes", "./unfiltered"}, 1, "failed: no test passed\n"},
		"all tests are skipped":                 {[]string{"./skipped"}, 1, "failed: no test passed\n"},
		"a test that would pass the next time":  {[]string{"./flaky"}, 1, "failed: example.com/tests/flaky.TestFlaky: flaky_test.go:LINE: flaky the first time,\n"},
		"a cluster that would start next time":  {[]string{"./start"}, 1, "failed: example.com/tests/start: suite: the cluster did not start\n"},
		"a cluster that does not stop":          {[]string{"./stop"}, 1, "failed: example.com/tests/stop: suite: the cluster did not stop\n"},
		"a package that does not compile":       {[]string{"./broken"}, 1, "failed: example.com/tests/broken: did not compile\n"},
		"a word of success beside a failure":    {[]string{"./claims"}, 1, "failed: example.com/tests/claims.TestClaims: claims_test.go:LINE: fails\n"},
		"a killed program":                      {[]string{"./killed"}, 1, "failed: example.com/tests/killed: the test binary ended before its tests: "},
		"no package":                            {[]string{"./none/..."}, 1, "failed: ./none/...: did not compile\n"},
		"each test as it runs":                  {[]string{"-v", "./passes"}, 0, "=== RUN   TestPasses\n    passes_test.go:LINE: not printed\n--- PASS: TestPasses (TIME)\n"},
		"a test that ends the program, with -v": {[]string{"-v", "./quits"}, 1, "=== RUN   TestQuits\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			t.Setenv("JOBSET_MARKERS", g.markers)
			t.Setenv("JOBSET_VARIABLE", "of the run")
			code, out := call(t, append([]string{"once", "--", "-vet=off", "-ldflags", "-s -w", "-count=1", "-p", "1"}, test.args...)...)
			if out = steady(out); code != test.code || !strings.Contains(out, test.printed) || code == 0 && strings.Contains(out, "failed") {
				t.Errorf("exits with %d and prints\n%s\nwant %d and\n%s", code, out, test.code, test.printed)
			}
		})
	}
}

// TestOutputOfPackagesIsNotMixed tests two packages at the same time, of which one ends while the other prints.
func TestOutputOfPackagesIsNotMixed(t *testing.T) {
	const events = `{"Action":"start","Package":"a"}
{"Action":"output","Package":"a","Output":"a1\n"}
{"Action":"start","Package":"b"}
{"Action":"output","Package":"b","Output":"b1\n"}
{"Action":"output","Package":"a","Output":"a2\n"}
{"Action":"output","Package":"b","Output":"b2\n"}
{"Action":"pass","Package":"b"}
{"Action":"output","Package":"a","Output":"a3\n"}
{"Action":"pass","Package":"a"}
`
	var out strings.Builder
	if _, err := read(strings.NewReader(events), &out, true); err != nil {
		t.Fatal(err)
	}
	if want := "a1\nb1\nb2\na2\na3\n"; out.String() != want {
		t.Errorf("prints %q, want %q", &out, want)
	}
}
