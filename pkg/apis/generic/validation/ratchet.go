// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation holds what the validation of every kind needs: bounds of lists, tolerance of what is stored already, and
// fields that all kinds have.
package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Introduced returns the errors of the new object that the stored one does not have: as many of a kind as there are more
// of it. Errors are of one kind when they differ at most in list indices.
func Introduced(next, stored field.ErrorList) field.ErrorList {
	if len(next) == 0 || len(stored) == 0 {
		return next
	}
	tolerated := make(map[string]int, len(stored))
	for _, err := range stored {
		tolerated[kindOf(err)]++
	}
	var errs field.ErrorList
	for _, err := range next {
		if kind := kindOf(err); tolerated[kind] > 0 {
			tolerated[kind]--
			continue
		}
		errs = append(errs, err)
	}
	return errs
}

// kindOf leaves the digits of list indices out of the path: items may move in a list without getting better or worse.
func kindOf(err *field.Error) string {
	var kind strings.Builder
	inIndex := false
	for _, r := range err.Field {
		switch {
		case r == '[':
			inIndex = true
		case inIndex && r >= '0' && r <= '9':
			continue
		default:
			inIndex = false
		}
		kind.WriteRune(r)
	}
	kind.WriteString(": ")
	kind.WriteString(err.ErrorBody())
	return kind.String()
}
