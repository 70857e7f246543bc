// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxPatternLength is in bytes.
	MaxPatternLength = 1024
	// MaxPatternStates bounds what the patterns of a policy cost together: the time to compile them, and their memory.
	MaxPatternStates = 20_000
)

// validatePattern checks a pattern without compiling it: a few characters can stand for millions of states. An expression
// that parses also compiles. The states are taken from the room.
func validatePattern(pattern string, room *int64, path *field.Path) *field.Error {
	if len(pattern) > MaxPatternLength {
		return field.TooLong(path, "", MaxPatternLength)
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return field.Invalid(path, pattern, "must be an RE2 regular expression: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	n := states(re)
	if n > *room {
		return field.Invalid(path, pattern, fmt.Sprintf(
			"must be simpler: all patterns of a policy together may have %d states, of which %d are left, and this one has about %d; repeat "+
				"fewer or shorter parts", MaxPatternStates, *room, n))
	}
	*room -= n
	return nil
}

// states estimates the number of instructions that an expression compiles to. Repetitions are written out.
func states(re *syntax.Regexp) int64 {
	var n int64
	for _, sub := range re.Sub {
		n += states(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n += int64(len(re.Rune))
	case syntax.OpRepeat:
		n *= int64(max(re.Min, re.Max, 1))
	}
	return n + 1
}
