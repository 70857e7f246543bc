// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"

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
}

// TerminalOf returns what is behind a writer. Colors are off when NO_COLOR is set or TERM is dumb.
func TerminalOf(w io.Writer) Terminal {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Terminal{}
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	return Terminal{Width: width, Height: height, Colors: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
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
