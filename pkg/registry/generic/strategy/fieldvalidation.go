// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package strategy

import "context"

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
