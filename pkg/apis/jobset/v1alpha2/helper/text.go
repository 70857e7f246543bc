// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"strings"
	"unicode/utf8"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
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

// firstCharacters shortens the reason of an attempt to the length that the API allows.
func firstCharacters(reason string) string {
	n := 0
	for i := range reason {
		if n == jobsetv1alpha2.MaxAttemptReasonCharacters {
			return reason[:i]
		}
		n++
	}
	return reason
}
