// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// maxFailed is how many tests may fail in all runs that share a state. If more fail, the reason is no accident.
const maxFailed = 5

func tooMany(failed int) string {
	return fmt.Sprintf("%d tests failed, and at most %d may fail for all others to count", failed, maxFailed)
}

// run runs tests for the first time.
func run(state string, args []string, stdout, stderr io.Writer) (int, error) {
	parsed, err := parse(args)
	if err != nil {
		return 0, err
	}
	earlier, err := load(state)
	if err != nil {
		return 0, err
	}
	env := os.Environ()
	results, err := goTest(parsed, env, stdout, stderr)
	if err != nil {
		return 0, err
	}
	r := results.record()
	r.Arguments, r.Environment = args, slices.DeleteFunc(slices.Clone(env), func(v string) bool { return !isTestVariable(v) })
	failed := 0
	for _, other := range append(earlier, r) {
		for _, repetition := range other.Repeat {
			failed += len(repetition.failures())
		}
	}
	if failed > maxFailed {
		r.Failed = append(r.Failed, tooMany(failed))
	}
	if err := r.save(state); err != nil {
		return 0, err
	}
	r.print(stdout)
	if len(r.Failed) > 0 {
		return 1, nil
	}
	return 0, nil
}

// print says what the tests of the run that did not pass lead to.
func (r record) print(out io.Writer) {
	for _, line := range r.Failed {
		fmt.Fprintln(out, "failed:", short(line))
	}
	prefix := "failed, repeated at the end:"
	if len(r.Failed) > 0 {
		prefix = "failed, not repeated:"
	}
	for _, repetition := range r.Repeat {
		for _, line := range repetition.failures() {
			fmt.Fprintln(out, prefix, short(line))
		}
	}
	for _, line := range r.Stopped {
		fmt.Fprintln(out, "tests passed, but stopping failed:", short(line))
	}
}
