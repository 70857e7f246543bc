// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxWarnings is more than the library sends.
const maxWarnings = 100

// Warnings is a list of what the server warns clients of: what is valid, but probably not what the user wants. It is bounded in length.
type Warnings struct{ texts []string }

// Add adds a warning about a field.
func (w *Warnings) Add(path *field.Path, format string, args ...any) {
	w.Append(path.String() + ": " + fmt.Sprintf(format, args...))
}

// Append adds a warning.
func (w *Warnings) Append(warning string) {
	if len(w.texts) < maxWarnings {
		w.texts = append(w.texts, warning)
	}
}

// Texts returns the warnings in the order in which they were added.
func (w *Warnings) Texts() []string { return w.texts }

// IntroducedWarnings returns the warnings that the stored object does not give rise to.
func IntroducedWarnings(next, stored []string) []string {
	return slices.DeleteFunc(slices.Clone(next), sets.New(stored...).Has)
}
