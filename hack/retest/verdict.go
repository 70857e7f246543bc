// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
)

// safetyAttribute is the attribute of tests that prove safety; test/framework/tier sets it.
const safetyAttribute = "safety"

// noMessage stands for a reason that is not in the output.
const noMessage = "no message"

// verdict is what follows from how a package ended.
type verdict struct {
	// red are reasons to fail at once.
	red []string
	// repeat are failed tests that are repeated, and whole says that all tests of the package are, for the reason.
	repeat []failure
	whole  string
	// stop is why the package failed after its tests had passed.
	stop string
}

// verdict decides what follows from how the package ended.
func (p *tested) verdict() verdict {
	switch {
	case p.action == "pass":
		return p.passed()
	// A package without test files is skipped.
	case p.action != "fail":
		return verdict{}
	case p.failedBuild != "":
		return verdict{red: []string{p.name + ": did not compile"}}
	case p.crash != "":
		return verdict{red: []string{p.name + ": " + p.crash}}
	case p.end == "PASS" && !p.unfinished && len(p.failures) == 0:
		return verdict{stop: cmp.Or(p.last, noMessage)}
	case p.end != "" && !p.unfinished:
		return p.failedTests()
	case p.begun:
		return verdict{red: []string{p.name + ": the test binary ended before its tests: " + cmp.Or(p.crashInTest, p.last, noMessage)}}
	}
	return verdict{whole: cmp.Or(p.last, noMessage)}
}

// passed decides whether a test binary that exited with 0 has run its tests. A program may exit with any code before or after it does.
func (p *tested) passed() verdict {
	switch {
	case !p.begun:
		return verdict{red: []string{p.name + ": passed without running a test"}}
	case len(p.failures) > 0:
		return verdict{red: []string{fmt.Sprintf("%s: the test binary exited with 0 although %s failed", p.name, p.failures[0].Test)}}
	case p.end != "PASS" || p.unfinished:
		return verdict{red: []string{p.name + ": the test binary exited with 0 before its tests ended"}}
	}
	return verdict{}
}

// failedTests decides what follows from the tests that failed.
func (p *tested) failedTests() verdict {
	if len(p.failures) == 0 {
		return verdict{red: []string{p.name + ": failed although no test failed"}}
	}
	var v verdict
	for _, f := range p.failures {
		switch {
		case p.safety[f.Test]:
			v.red = append(v.red, fmt.Sprintf("%s.%s, a test of safety: %s", p.name, f.Test, f.Message))
		// With -count, a test may fail more than once.
		case !slices.ContainsFunc(v.repeat, func(other failure) bool { return other.Test == f.Test }):
			v.repeat = append(v.repeat, f)
		}
	}
	return v
}
