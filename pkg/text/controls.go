// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsControl returns whether a character acts on its display rather than being a part of the text: control characters (ESC, NUL, line
// breaks, tabs), separators of lines and paragraphs, marks that change the direction of the text around them, and invisible characters
// without a width. Joiners are not among them, because scripts and emoji need them.
func IsControl(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), unicode.In(r, unicode.Zl, unicode.Zp):
		return true
	case r == '\u200B', r >= '\u2060' && r <= '\u2064', r == '\uFEFF':
		return true
	}
	return false
}

// FirstControl returns the position of the first control character in characters, from 1, and the character. The
// position is 0 if there is none. A byte that is no UTF-8 counts as one.
func FirstControl(text string) (position int, char rune) {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		position++
		if IsControl(r) || r == utf8.RuneError && size == 1 {
			return position, r
		}
		at += size
	}
	return 0, 0
}

// Printable replaces control characters in a text from another source, such as the last output of a container, by U+FFFD. Line breaks and
// tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// Line is like Printable, and replaces line breaks and tabs, too.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}
