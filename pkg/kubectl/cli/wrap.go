// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks a text between words into lines of the width of the terminal. The first begins with first, and the others with
// rest, which is their indent. A word that is wider than a line stands alone, and is left whole so that it can be copied.
func (t Terminal) Wrap(text, first, rest string) []string {
	return fold(text, first, rest, t.Width, true)
}

// Fold is Wrap for places where no line may be wider than the terminal: a word that is wider than a line is broken.
func (t Terminal) Fold(text, first, rest string) []string {
	return fold(text, first, rest, t.Width, false)
}

// resetPaint ends what paints.
const resetPaint = "\x1b[0m"

// leastFolded is the room of a line down to which it is indented.
const leastFolded = 8

// fold breaks a text into lines of so many columns; 0 means any number. What paints the text paints each line of it, and not the indents.
func fold(text, first, rest string, width int, whole bool) []string {
	if width <= 0 {
		return []string{first + text}
	}
	if !whole && Columns(rest)+leastFolded > width {
		first, rest = strings.TrimLeft(first, " "), ""
	}
	f := &folder{lines: []string{first}, rest: rest, width: width, used: Columns(first), empty: true}
	for word := range strings.FieldsSeq(text) {
		room := Columns(word)
		if !f.empty && f.used+1+room > width {
			f.next()
		}
		if !f.empty {
			f.add(" ", 1)
		}
		if whole || f.used+room <= width {
			f.add(word, room)
			continue
		}
		f.broken(word)
	}
	return f.lines
}

// folder makes lines.
type folder struct {
	lines       []string
	rest, paint string
	width, used int
	// empty means that nothing stands in the last line but its indent.
	empty bool
}

// next begins a line.
func (f *folder) next() {
	last := &f.lines[len(f.lines)-1]
	begin := f.rest
	if f.paint != "" {
		*last += resetPaint
		begin += f.paint
	}
	f.lines, f.used, f.empty = append(f.lines, begin), Columns(f.rest), true
}

// add adds a word, or a space, to the last line.
func (f *folder) add(text string, room int) {
	f.lines[len(f.lines)-1] += text
	f.used, f.empty = f.used+room, false
	for rest := text; rest != ""; {
		if sequence := escape(rest); sequence != "" {
			f.paint = sequence
			if sequence == resetPaint {
				f.paint = ""
			}
			rest = rest[len(sequence):]
			continue
		}
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
}

// broken adds a word that is wider than a line.
func (f *folder) broken(word string) {
	for word != "" {
		if sequence := escape(word); sequence != "" {
			empty := f.empty
			f.add(sequence, 0)
			f.empty, word = empty, word[len(sequence):]
			continue
		}
		char, size := utf8.DecodeRuneInString(word)
		room := charWidths.RuneWidth(char)
		if f.used+room > f.width && !f.empty {
			f.next()
		}
		f.add(word[:size], room)
		word = word[size:]
	}
}
