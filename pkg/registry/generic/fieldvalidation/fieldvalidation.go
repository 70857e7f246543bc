// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldvalidation passes to strategies what a client asked for about fields that the server does not store: refuse,
// warn or ignore. Decoders treat unknown fields so; strategies treat fields of features that are off the same way.
package fieldvalidation

import "context"

type key struct{}

// With returns a context with the directive of the options of a request: Strict, Warn, Ignore, or none.
func With(ctx context.Context, directive string) context.Context {
	return context.WithValue(ctx, key{}, directive)
}

// From returns the directive of the request, or nothing.
func From(ctx context.Context) string {
	directive, _ := ctx.Value(key{}).(string)
	return directive
}
