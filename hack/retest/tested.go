// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is what go test -json prints in a line; `go doc test2json` describes it.
type event struct {
	Action, Package, Test, Output string
	// Key and Value are an attribute of a test.
	Key, Value string
	// ImportPath is the package whose output of the build this is, and FailedBuild the one that did not compile.
	ImportPath, FailedBuild string
}

// failure is a test that failed, and why. Subtests count for the test that they are part of.
type failure struct {
	Test    string `json:"test"`
	Message string `json:"message"`
}

// tested is a package that is or was tested.
type tested struct {
	name    string
	running map[string]*test
	output  text
	// passes are the tests that passed, and skipped is how many were skipped. Subtests do not count.
	passes   []string
	skipped  int
	failures []failure
	safety   map[string]bool
	// begun says that a test ran, and end is the line PASS or FAIL that the binary prints after all tests. Such a line that another program
	// printed is followed by tests, or leaves tests unfinished.
	begun, unfinished bool
	end               string
	// crash is the line with which a panic begins, and crashInTest one in the output of a test, which may be about another program.
	// last is the last line of output outside of tests, and result the line of go test.
	crash, crashInTest, last, result string
	// all is output of tests and of the package that has yet to be shown.
	all string
	// action is how the package ended.
	action, failedBuild string
}

func newTested(name string) *tested {
	return &tested{name: name, running: map[string]*test{}, output: text{limit: 8 * maxText}, safety: map[string]bool{}}
}

// crashed matches the beginning of what the runtime prints when a program panics, and of what go test prints when it has killed it.
var crashed = regexp.MustCompile(`^(panic: |fatal error: |SIGQUIT: |\*\*\* Test killed)`)

// root is the name of the test that a subtest is part of.
func root(name string) string {
	name, _, _ = strings.Cut(name, "/")
	return name
}

// handle notes an event of the package, and returns true if the package has ended.
func (p *tested) handle(e event) bool {
	if e.Test != "" {
		p.handleTest(e)
		return false
	}
	switch e.Action {
	case "output":
		p.write(e.Output)
	case "pass", "fail", "skip":
		p.action, p.failedBuild = e.Action, e.FailedBuild
		for _, name := range slices.Sorted(maps.Keys(p.running)) {
			p.unfinished = p.unfinished || p.running[name].begun
			if t := p.running[name]; !t.output.empty() {
				p.output.write("--- not finished: " + name + "\n" + t.output.String())
			}
		}
		clear(p.running)
		return true
	}
	return false
}

// write notes output that belongs to no test.
func (p *tested) write(s string) {
	line := strings.TrimSpace(s)
	switch {
	case line == "PASS" || line == "FAIL":
		p.end = line
		return
	case slices.ContainsFunc([]string{"ok  \t", "FAIL\t", "?   \t"}, func(prefix string) bool { return strings.HasPrefix(s, prefix+p.name) }):
		p.result = strings.TrimRight(s, "\n")
		return
	case crashed.MatchString(s):
		if p.crash == "" {
			p.crash = line
		}
	}
	if line != "" {
		p.last = line
	}
	p.output.write(s)
}

func (p *tested) handleTest(e event) {
	t := p.running[e.Test]
	if t == nil {
		t = &test{name: e.Test, output: text{limit: maxText}}
		p.running[e.Test] = t
	}
	p.begun = true
	switch e.Action {
	case "run":
		t.begun, p.end = true, ""
		return
	case "output":
		t.write(e.Output)
		if crashed.MatchString(e.Output) {
			p.crashInTest = strings.TrimSpace(e.Output)
		}
		return
	case "attr":
		if e.Key == safetyAttribute && e.Value == "true" {
			p.safety[root(e.Test)] = true
		}
		return
	case "pass", "skip", "fail":
		p.endTest(t, e.Action)
		delete(p.running, e.Test)
	}
}

// endTest notes how a test ended.
func (p *tested) endTest(t *test, action string) {
	parent := p.parent(t.name)
	switch {
	case action == "fail" && parent != nil:
		parent.output.write(indent(t.failed()))
		if parent.inner == "" {
			parent.inner = t.message()
		}
	case action == "fail":
		p.output.write(t.failed())
		p.failures = append(p.failures, failure{Test: root(t.name), Message: t.message()})
	case root(t.name) != t.name:
	case action == "pass":
		p.passes = append(p.passes, t.name)
	default:
		p.skipped++
	}
}

// parent returns the running test that the subtest is part of. The name of a subtest may have slashes.
func (p *tested) parent(name string) *test {
	for {
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return nil
		}
		name = name[:i]
		if t := p.running[name]; t != nil {
			return t
		}
	}
}

// show prints the output that has yet to be shown.
func (p *tested) show(out io.Writer) {
	fmt.Fprint(out, p.all)
	p.all = ""
}

// report is what go test prints about the package without -v.
func (p *tested) report() string {
	if p.action != "fail" {
		return p.result + "\n"
	}
	result := p.result
	if result == "" {
		result = "FAIL\t" + p.name
	}
	return p.output.String() + result + "\n"
}
