// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes one line for a terminal of text from other sources: reasons, messages, names of users. Control characters in it could move
// the cursor or color what follows.
func Clean(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
