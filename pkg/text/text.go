// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text shortens texts to the limits of the API.
package text

import (
	"strings"
	"unicode/utf8"
)

// Truncate shortens a text to a number of bytes, between two characters. The result does not keep the whole text in memory.
func Truncate(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.Clone(text[:limit])
}

// TruncateWithEllipsis is like Truncate, and ends what it shortens with "...".
func TruncateWithEllipsis(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	return strings.TrimRight(Truncate(text, max(limit-len(mark), 0)), "\n ") + mark
}
