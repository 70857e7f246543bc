// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
)

// Wrap breaks a text between words into lines of the width of the terminal. The first begins with first, and the others with
// rest, which is their indent. A word that is wider than a line stands alone, and is left whole so that it can be copied.
func (t Terminal) Wrap(text, first, rest string) []string {
	if t.Width <= 0 {
		return []string{first + text}
	}
	lines := []string{first}
	empty, used := true, Columns(first)
	for word := range strings.FieldsSeq(text) {
		room := Columns(word)
		if !empty && used+1+room > t.Width {
			lines, used, empty = append(lines, rest), Columns(rest), true
		}
		if !empty {
			lines[len(lines)-1] += " "
			used++
		}
		lines[len(lines)-1] += word
		used, empty = used+room, false
	}
	return lines
}
