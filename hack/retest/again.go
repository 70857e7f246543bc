// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxFlaky is how many tests may be flaky, so that tests do not become worse unnoticed.
	maxFlaky = 3
	// maxLines is how many lines a summary has, and maxColumns how long a line of it is.
	maxLines, maxColumns = 20, 240
)

// summary is what the repetition shows at the end.
type summary struct {
	passed, skipped, repeated int
	failed, flaky, stopped    []string
	nothing                   bool
}

// again repeats the tests of the state.
func again(state, log string, stdout, stderr io.Writer) (int, error) {
	records, err := load(state)
	if err != nil {
		return 0, err
	}
	var s summary
	if s.first(records) {
		if err := s.repeat(records, stdout, stderr); err != nil {
			return 0, err
		}
	}
	switch {
	case len(records) == 0:
		s.failed = []string{"no run of tests is in " + state}
	case s.passed == 0 && len(s.failed) == 0:
		s.failed = []string{"no test passed"}
	}
	if len(s.flaky) > maxFlaky {
		s.failed = append(s.failed, fmt.Sprintf("%d tests are flaky, and at most %d may be", len(s.flaky), maxFlaky))
	}
	if log != "" {
		if err := s.log(log); err != nil {
			return 0, err
		}
	}
	s.print(stdout)
	if len(s.failed) > 0 {
		return 1, nil
	}
	return 0, nil
}

// first notes the results of the runs, and returns whether tests are repeated. They are not if the result is known, whatever they do now.
func (s *summary) first(records []record) bool {
	var failures []string
	for _, r := range records {
		s.passed, s.skipped = s.passed+r.Passed, s.skipped+r.Skipped
		s.failed, s.stopped = append(s.failed, r.Failed...), append(s.stopped, r.Stopped...)
		for _, repetition := range r.Repeat {
			failures = append(failures, repetition.failures()...)
		}
	}
	s.nothing = len(s.failed) == 0 && len(failures) == 0
	// Runs at the same time do not count the failures of each other.
	if len(s.failed) == 0 && len(failures) > maxFailed {
		s.failed = []string{tooMany(len(failures))}
	}
	if len(s.failed) == 0 {
		return true
	}
	s.failed = append(s.failed, failures...)
	return false
}

// repeat repeats one package after the other.
func (s *summary) repeat(records []record, stdout, stderr io.Writer) error {
	for _, r := range records {
		args, err := parse(r.Arguments)
		if err != nil {
			return err
		}
		for _, repetition := range r.Repeat {
			only := args.only(repetition.Package, repetition.Tests)
			fmt.Fprintln(stdout, "repeating: go", strings.Join(only.command(), " "))
			results, err := goTest(only, r.environment(), stdout, stderr)
			if err != nil {
				return err
			}
			s.compare(repetition, results)
			if results.interrupted {
				return nil
			}
		}
	}
	return nil
}

// compare notes which tests of a package failed again.
func (s *summary) compare(first repetition, second *results) {
	r := second.record()
	s.passed, s.skipped, s.repeated = s.passed+r.Passed, s.skipped+r.Skipped, s.repeated+len(first.failures())
	s.failed, s.stopped = append(s.failed, r.Failed...), append(s.stopped, r.Stopped...)
	for _, repetition := range r.Repeat {
		s.failed = append(s.failed, repetition.failures()...)
	}
	passed := len(r.Failed) == 0 && len(r.Repeat) == 0
	if len(first.Tests) == 0 && passed {
		s.flaky = append(s.flaky, first.failures()...)
	}
	for i, f := range first.Tests {
		if line := first.failures()[i]; second.passed(f.Test) {
			s.flaky = append(s.flaky, line)
		} else if passed {
			s.failed = append(s.failed, line+" (did not run the second time)")
		}
	}
}

// log appends the flaky tests to the file.
func (s *summary) log(file string) error {
	if len(s.flaky) == 0 {
		return nil
	}
	commit, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	var lines strings.Builder
	for _, line := range s.flaky {
		fmt.Fprintf(&lines, "%s %s flaky: %s\n", time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), short(line))
	}
	return appendTo(file, lines.String())
}

// print prints the summary.
func (s *summary) print(out io.Writer) {
	title := fmt.Sprintf("tests: %d passed, %d skipped, %d repeated, %d flaky", s.passed, s.skipped, s.repeated, len(s.flaky))
	if s.nothing {
		title += "; nothing is to be repeated"
	}
	lines := []string{title}
	for _, part := range []struct {
		prefix string
		lines  []string
	}{{"failed: ", s.failed}, {"flaky: ", s.flaky}, {"tests passed, but stopping failed: ", s.stopped}} {
		for _, line := range part.lines {
			lines = append(lines, part.prefix+short(line))
		}
	}
	if len(lines) > maxLines {
		left := len(lines) - maxLines + 1
		lines = append(lines[:maxLines-1], fmt.Sprintf("... and %d more", left))
	}
	fmt.Fprintln(out, strings.Join(lines, "\n"))
}

// short returns the beginning of a line.
func short(line string) string {
	if letters := []rune(line); len(letters) > maxColumns {
		return string(letters[:maxColumns-3]) + "..."
	}
	return line
}
