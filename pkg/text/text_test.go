// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

func TestTruncate(t *testing.T) {
	for given, want := range map[string]string{
		"":         "",
		"12345678": "12345678",
		"1234567ä": "1234567",
		"\xff":     "\uFFFD",
	} {
		if got := text.Truncate(given, 8); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
	for given, want := range map[string]string{"12345678": "12345678", "123456789": "12345...", "123 56789": "123 5...", "1234 6789": "1234..."} {
		if got := text.TruncateWithEllipsis(given, 8); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}
