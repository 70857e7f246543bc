// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package warnings collects what the server warns clients of: what is valid, but probably not what the user wants.
package warnings

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxWarnings is more than the library sends.
const maxWarnings = 100

// List is a list of warnings, bounded in length.
type List struct{ texts []string }

// Add adds a warning about a field.
func (l *List) Add(path *field.Path, format string, args ...any) {
	l.Append(path.String() + ": " + fmt.Sprintf(format, args...))
}

// Append adds a warning.
func (l *List) Append(warning string) {
	if len(l.texts) < maxWarnings {
		l.texts = append(l.texts, warning)
	}
}

// Texts returns the warnings in the order in which they were added.
func (l *List) Texts() []string { return l.texts }

// Introduced returns the warnings that the stored object does not give rise to.
func Introduced(next, stored []string) []string {
	return slices.DeleteFunc(slices.Clone(next), sets.New(stored...).Has)
}
