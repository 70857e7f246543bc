// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"errors"
	"flag"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Check fails if the flags of the test binary select no test. Tests that are skipped when they run are selected. Run calls it; others
// may do so before they set up what the tests share.
func Check(m *testing.M) error {
	if !flag.Parsed() {
		flag.Parse()
	}
	for _, other := range []string{"test.list", "test.bench", "test.fuzz"} {
		if value(other) != "" {
			return nil
		}
	}
	names, err := testNames(m)
	if err != nil {
		return err
	}
	return anySelected(names, value("test.run"), value("test.skip"))
}

func value(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// testNames returns the names of the tests of a testing.M, which only a private field has. If another version of Go has no such
// field, no test runs.
func testNames(m any) ([]string, error) {
	tests := reflect.Indirect(reflect.ValueOf(m)).FieldByName("tests")
	if !tests.IsValid() || tests.Type() != reflect.TypeFor[[]testing.InternalTest]() {
		return nil, errors.New("testing.M has no field tests of type []testing.InternalTest: adapt test/framework/suite to this version of Go")
	}
	var names []string
	for i := range tests.Len() {
		names = append(names, tests.Index(i).FieldByName("Name").String())
	}
	return names, nil
}

// anySelected fails unless a test matches the values of -run and -skip.
func anySelected(names []string, run, skip string) error {
	runs, err := parse(run)
	if err != nil {
		return fmt.Errorf("-test.run: %w", err)
	}
	skips, err := parse(skip)
	if err != nil {
		return fmt.Errorf("-test.skip: %w", err)
	}
	for _, name := range names {
		if run != "" && !slices.ContainsFunc(runs, func(a alternative) bool { return a.test.MatchString(name) }) {
			continue
		}
		// The first alternative that matches decides, and one with subtests does not skip the whole test. So does the testing package.
		i := slices.IndexFunc(skips, func(a alternative) bool { return a.test.MatchString(name) })
		if skip == "" || i < 0 || skips[i].subtests {
			return nil
		}
	}
	return fmt.Errorf("none of the %d tests of the package matches -test.run=%q -test.skip=%q", len(names), run, skip)
}

// alternative is a part of the value of -run or -skip: the pattern of a test, which may be followed by patterns of its subtests.
type alternative struct {
	test     *regexp.Regexp
	subtests bool
}

// parse divides the value of -run or -skip as the testing package does: at each | and / outside of brackets and parentheses.
func parse(value string) ([]alternative, error) {
	var all []alternative
	for _, part := range divide(value, '|') {
		elements := divide(part, '/')
		pattern, err := regexp.Compile(strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return '_'
			}
			return r
		}, elements[0]))
		if err != nil {
			return nil, err
		}
		all = append(all, alternative{test: pattern, subtests: len(elements) > 1})
	}
	return all, nil
}

// divide divides a pattern at the separators outside of brackets and parentheses.
func divide(pattern string, separator rune) []string {
	parts := []string{""}
	brackets, parentheses, escaped := 0, 0, false
	for _, r := range pattern {
		if r == separator && !escaped && brackets == 0 && parentheses == 0 {
			parts = append(parts, "")
			continue
		}
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == '[':
			brackets++
		case r == ']':
			brackets = max(brackets-1, 0)
		case brackets == 0:
			parentheses += map[rune]int{'(': 1, ')': -1}[r]
		}
		parts[len(parts)-1] += string(r)
	}
	return parts
}
