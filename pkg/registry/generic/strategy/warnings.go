// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"context"
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

// fieldValidation is the key in contexts of what a client asked for about fields that the server does not store: refuse, warn or
// ignore. Decoders treat unknown fields so; strategies treat fields of features that are off the same way.
type fieldValidation struct{}

// WithFieldValidation returns a context with the directive of the options of a request: Strict, Warn, Ignore, or none.
func WithFieldValidation(ctx context.Context, directive string) context.Context {
	return context.WithValue(ctx, fieldValidation{}, directive)
}

// FieldValidation returns the directive of the request, or nothing.
func FieldValidation(ctx context.Context) string {
	directive, _ := ctx.Value(fieldValidation{}).(string)
	return directive
}
