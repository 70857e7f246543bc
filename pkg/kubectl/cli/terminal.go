// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Terminal is how text can be shown to the user.
type Terminal struct {
	// Width is the number of columns. 0 when the output is no terminal: then nothing is cut.
	Width int
	// Height is the number of lines. 0 when the output is no terminal.
	Height int
	// Colors means that colors are shown.
	Colors bool
	// ASCII means that lines, bars and signs are drawn with characters of ASCII only.
	ASCII bool
}

// TerminalOf returns what is behind a writer. Colors are off when NO_COLOR is set or TERM is dumb.
func TerminalOf(w io.Writer) Terminal {
	ascii := asciiOnly(os.Getenv)
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Terminal{ASCII: ascii}
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	return Terminal{Width: width, Height: height, Colors: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", ASCII: ascii}
}

// asciiOnly returns whether only the characters of ASCII can be shown: the locale is not one with UTF-8, or TERM is dumb.
func asciiOnly(env func(string) string) bool {
	if env("TERM") == "dumb" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(env(name)); value != "" {
			return !strings.Contains(value, "utf-8") && !strings.Contains(value, "utf8")
		}
	}
	return true
}

// Sign returns the text that draws something: the first, or the second where only ASCII is shown.
func (t Terminal) Sign(unicode, ascii string) string {
	if t.ASCII {
		return ascii
	}
	return unicode
}

// Color is an ANSI color or style.
type Color string

// The colors that commands use, each with one meaning.
const (
	Good  Color = "32" // green: ready, completed
	Bad   Color = "31" // red: failed
	Busy  Color = "33" // yellow: pending, restarting
	Quiet Color = "90" // grey: what is of less interest
	Bold  Color = "1"
)

// Paint returns the text in the color, if the terminal shows colors.
func (t Terminal) Paint(color Color, text string) string {
	if !t.Colors || text == "" || color == "" {
		return text
	}
	return "\x1b[" + string(color) + "m" + text + "\x1b[0m"
}
