// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

func TestControls(t *testing.T) {
	cases := map[string]struct {
		text      string
		position  int
		char      rune
		printable string
		line      string
	}{
		"plain text":                {text: "node-3 is slow; ask Zoë — 日本", printable: "node-3 is slow; ask Zoë — 日本", line: "node-3 is slow; ask Zoë — 日本"},
		"no text":                   {},
		"emoji with joiners":        {text: "👩\u200D💻", printable: "👩\u200D💻", line: "👩\u200D💻"},
		"ESC":                       {text: "é\x1b[2J", position: 2, char: 0x1b, printable: "é\uFFFD[2J", line: "é\uFFFD[2J"},
		"NUL":                       {text: "\x00", position: 1, char: 0, printable: "\uFFFD", line: "\uFFFD"},
		"DEL":                       {text: "a\x7f", position: 2, char: 0x7f, printable: "a\uFFFD", line: "a\uFFFD"},
		"C1":                        {text: "a\u009b2J", position: 2, char: 0x9b, printable: "a\uFFFD2J", line: "a\uFFFD2J"},
		"a line break":              {text: "a\nb", position: 2, char: '\n', printable: "a\nb", line: "a\uFFFDb"},
		"a tab":                     {text: "a\tb", position: 2, char: '\t', printable: "a\tb", line: "a\uFFFDb"},
		"a carriage return":         {text: "a\rb", position: 2, char: '\r', printable: "a\uFFFDb", line: "a\uFFFDb"},
		"a line separator":          {text: "a\u2028", position: 2, char: 0x2028, printable: "a\uFFFD", line: "a\uFFFD"},
		"a right-to-left override":  {text: "abc\u202Etxt", position: 4, char: 0x202e, printable: "abc\uFFFDtxt", line: "abc\uFFFDtxt"},
		"an isolate":                {text: "\u2066", position: 1, char: 0x2066, printable: "\uFFFD", line: "\uFFFD"},
		"a direction mark":          {text: "\u200F", position: 1, char: 0x200f, printable: "\uFFFD", line: "\uFFFD"},
		"an Arabic letter mark":     {text: "\u061C", position: 1, char: 0x61c, printable: "\uFFFD", line: "\uFFFD"},
		"a byte order mark":         {text: "\uFEFF", position: 1, char: 0xfeff, printable: "\uFFFD", line: "\uFFFD"},
		"a space without width":     {text: "a\u200Bb", position: 2, char: 0x200b, printable: "a\uFFFDb", line: "a\uFFFDb"},
		"a byte that is no UTF-8":   {text: "a\xffb", position: 2, char: 0xfffd, printable: "a\uFFFDb", line: "a\uFFFDb"},
		"the replacement character": {text: "a\uFFFDb", printable: "a\uFFFDb", line: "a\uFFFDb"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if position, char := text.FirstControl(c.text); position != c.position || char != c.char {
				t.Errorf("character %d is %U, want %d and %U", position, char, c.position, c.char)
			}
			if got := text.Printable(c.text); got != c.printable {
				t.Errorf("printable is %q, want %q", got, c.printable)
			}
			if got := text.Line(c.text); got != c.line {
				t.Errorf("the line is %q, want %q", got, c.line)
			}
		})
	}
}
