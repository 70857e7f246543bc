// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"k8s.io/apimachinery/pkg/util/duration"
)

// charWidths are the widths of characters on a terminal: East Asian ones take two columns, combining ones none. They are the same in
// every locale.
var charWidths = &runewidth.Condition{StrictEmojiNeutral: true}

// Cut returns the line, shortened with … if it is wider than the terminal. Sequences that paint take no room, and what they
// began is ended.
func (t Terminal) Cut(line string) string { return t.cut(line, t.Width) }

// cut shortens a text to so many columns; 0 means any number.
func (t Terminal) cut(line string, width int) string {
	if width <= 0 || Columns(line) <= width {
		return line
	}
	var out strings.Builder
	room, painted := width-1, false
	for rest := line; rest != ""; {
		if sequence := escape(rest); sequence != "" {
			out.WriteString(sequence)
			painted = sequence != "\x1b[0m"
			rest = rest[len(sequence):]
			continue
		}
		char, size := utf8.DecodeRuneInString(rest)
		if room -= charWidths.RuneWidth(char); room < 0 {
			break
		}
		out.WriteString(rest[:size])
		rest = rest[size:]
	}
	out.WriteString(t.Sign("…", "~"))
	if painted {
		out.WriteString("\x1b[0m")
	}
	return out.String()
}

// Columns is the room that a text takes on a terminal, without sequences that paint.
func Columns(text string) int {
	n := 0
	for text != "" {
		if sequence := escape(text); sequence != "" {
			text = text[len(sequence):]
			continue
		}
		char, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		n += charWidths.RuneWidth(char)
	}
	return n
}

// Pad returns the text with spaces after it up to a number of columns.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-Columns(text)))
}

// escape returns the painting sequence that the text begins with, or "".
func escape(text string) string {
	if !strings.HasPrefix(text, "\x1b[") {
		return ""
	}
	end := strings.IndexByte(text, 'm')
	if end < 0 {
		return ""
	}
	return text[:end+1]
}

// Lines writes lines, each cut at the width of the terminal.
func (t Terminal) Lines(w io.Writer, lines ...string) error {
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(t.Cut(strings.TrimRight(line, " ")))
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Duration is a time span in the short form of kubectl, like 3h12m: every command shows times in this form. What is negative,
// because clocks differ, counts as none.
func Duration(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

// Seconds is Duration of so many seconds.
func Seconds(seconds float64) string { return Duration(time.Duration(seconds * float64(time.Second))) }

// Ago is the time since then, like "3h12m ago".
func Ago(now, then time.Time) string { return Duration(now.Sub(then)) + " ago" }

// Number is a number with a comma before each three digits, like 10,000.
func Number(n int) string {
	digits := fmt.Sprint(n)
	begin := 0
	if n < 0 {
		begin = 1
	}
	for i := len(digits) - 3; i > begin; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Count is a number with what is counted, like "1 pod" or "10,000 pods".
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + one + "s"
}

// Join joins words like "a, b and c", with that word before the last.
func Join(words []string, last string) string {
	end := len(words) - 1
	if end < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}

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

// Align returns one line for each row, with the cells of a column under each other. Cells may be painted.
func Align(rows [][]string) []string {
	var columns []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(columns) {
				columns = append(columns, 0)
			}
			if len(row) > 1 {
				columns[i] = max(columns[i], Columns(cell))
			}
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i < len(row)-1 {
				cell = Pad(cell, columns[i]+gap)
			}
			line.WriteString(cell)
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}
