// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	a, err := parse([]string{"-C", "dir", "-vet=off", "-ldflags", "-s -w", "-short", "-p", "1", "./a/...", "-run", "X", "./b",
		"-args", "-seed", "5"})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(a.command(), ",")
	if want := "test,-C,dir,-vet=off,-ldflags,-s -w,-short,-p,1,-run,X,-json,./a/...,./b,-args,-seed,5"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = strings.Join(a.only("example.com/b", []failure{{Test: "TestA"}, {Test: "TestB"}}).command(), ",")
	if want := "test,-C,dir,-vet=off,-ldflags,-s -w,-short,-p,1,-run,X,-count=1,-parallel=1,-run=^(TestA|TestB)$,-json," +
		"example.com/b,-args,-seed,5"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = strings.Join(a.only("example.com/b", nil).command(), ",")
	if want := "test,-C,dir,-vet=off,-ldflags,-s -w,-short,-p,1,-run,X,-count=1,-parallel=1,-json,example.com/b,-args,-seed,5"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, args := range [][]string{{"-seed", "5", "./a"}, {"./a", "-run"}} {
		if a, err := parse(args); err == nil {
			t.Errorf("%q became %v", args, a)
		}
	}
}

func TestTextKeepsBothEnds(t *testing.T) {
	for _, size := range []int{1, 7, 64, 5000} {
		x := text{limit: 1000}
		var all strings.Builder
		for i := 0; all.Len() < 20000; i++ {
			line := fmt.Sprintf("%0*d\n", size, i)
			all.WriteString(line)
			x.write(line)
			if len(x.head)+len(x.tail) > 1500 {
				t.Fatalf("lines of %d bytes: %d bytes are kept", size, len(x.head)+len(x.tail))
			}
		}
		begin, rest, found := strings.Cut(x.String(), "\n... ")
		_, end, _ := strings.Cut(rest, "...\n")
		if !found || len(begin) != 500 || len(end) < 500 || !strings.HasPrefix(all.String(), begin) || !strings.HasSuffix(all.String(), end) {
			t.Errorf("lines of %d bytes: got\n%s", size, x.String())
		}
	}
	x := text{limit: 1000}
	x.write("short")
	if got := x.String(); got != "short\n" {
		t.Errorf("got %q", got)
	}
}

func TestSummaryIsShort(t *testing.T) {
	s := summary{failed: slices.Repeat([]string{strings.Repeat("ä", 1000)}, 30), flaky: []string{"x"}}
	var out strings.Builder
	s.print(&out)
	printed := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(printed) != maxLines || printed[maxLines-1] != "... and 13 more" || len([]rune(printed[1])) > 260 {
		t.Errorf("got %d lines:\n%s", len(printed), out.String())
	}
}

// Another program may print a panic, while the test fails for its own reason.
func TestPanicOfAnotherProgram(t *testing.T) {
	p := newTested("x")
	for _, e := range []event{
		{Action: "run", Test: "TestA"},
		{Action: "output", Test: "TestA", Output: "panic: of a program that the test started\n"},
		{Action: "output", Test: "TestA", Output: "    a_test.go:1: the program ended\n"},
		{Action: "output", Test: "TestA", Output: "--- FAIL: TestA (0.00s)\n"},
		{Action: "fail", Test: "TestA"},
		{Action: "output", Output: "FAIL\n"},
		{Action: "output", Output: "FAIL\tx\t1s\n"},
		{Action: "fail"},
	} {
		p.handle(e)
	}
	if v := p.verdict(); len(v.red) > 0 || len(v.repeat) != 1 || v.repeat[0].Message != "a_test.go:1: the program ended" {
		t.Errorf("got %+v", v)
	}
}

// A test binary that exits with 0 has passed only after its own last line.
func TestExitBeforeTheEnd(t *testing.T) {
	run, passes := event{Action: "run", Test: "TestA"}, event{Action: "pass", Test: "TestA"}
	end := event{Action: "output", Output: "PASS\n"}
	for name, test := range map[string]struct {
		events []event
		want   bool
	}{
		"all tests end":           {events: []event{run, passes, end}, want: true},
		"no last line":            {events: []event{run, passes}},
		"a test does not end":     {events: []event{run, end}},
		"a line before the tests": {events: []event{end, run, passes}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTested("x")
			for _, e := range append(test.events, event{Action: "pass"}) {
				p.handle(e)
			}
			var want []string
			if !test.want {
				want = []string{"x: the test binary exited with 0 before its tests ended"}
			}
			if red := p.verdict().red; !slices.Equal(red, want) {
				t.Errorf("got %q, want %q", red, want)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	for pattern, names := range map[string][2]string{
		"./...":                 {"example.com/a/b", ""},
		"./a/...":               {"example.com/a/b", "example.com/ab"},
		"./a/b/...":             {"example.com/a/b", "example.com/a/c"},
		"./a":                   {"example.com/a", "example.com/a/b"},
		"./a/":                  {"example.com/a", "example.com/a/b"},
		"../a/...":              {"example.com/a/b", "example.com/b"},
		"example.com/a":         {"example.com/a", "example.com/a/b"},
		"example.com/a/...":     {"example.com/a/b", "example.com/ab"},
		"example.com/.../c/...": {"example.com/a/b", ""},
	} {
		if !matches(pattern, names[0]) || names[1] != "" && matches(pattern, names[1]) {
			t.Errorf("%s: must match %s, and not %q", pattern, names[0], names[1])
		}
	}
}
