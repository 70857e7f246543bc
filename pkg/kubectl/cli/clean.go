// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes one line for a terminal of text that somebody else wrote: reasons, messages, names of users. Control
// characters in it could move the cursor or color what follows.
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

// UTF8Locale reports whether the locale of the user is one with UTF-8, so that other characters than those of ASCII can be
// shown.
func UTF8Locale() bool { return utf8Locale(os.Getenv) }

func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := env(name); value != "" {
			value = strings.ToLower(value)
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}
