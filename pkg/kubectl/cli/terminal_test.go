// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
)

func TestTerminalOf(t *testing.T) {
	_, tty, err := pty.Open()
	if err != nil {
		t.Fatalf("opening a pseudo terminal: %v", err)
	}
	defer tty.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Cols: 72, Rows: 20}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		noColor, term string
		want          Terminal
	}{
		"a terminal has a size and colors": {term: "xterm", want: Terminal{Width: 72, Height: 20, Colors: true}},
		"colors were switched off":         {term: "xterm", noColor: "1", want: Terminal{Width: 72, Height: 20}},
		"a dumb terminal knows no colors":  {term: "dumb", want: Terminal{Width: 72, Height: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tc.noColor)
			t.Setenv("TERM", tc.term)
			if diff := cmp.Diff(tc.want, TerminalOf(tty)); diff != "" {
				t.Errorf("terminal (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a pipe is no terminal", func(t *testing.T) {
		_, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if diff := cmp.Diff(Terminal{}, TerminalOf(w)); diff != "" {
			t.Errorf("terminal (-want +got):\n%s", diff)
		}
	})
	t.Run("a buffer is no terminal", func(t *testing.T) {
		if diff := cmp.Diff(Terminal{}, TerminalOf(&bytes.Buffer{})); diff != "" {
			t.Errorf("terminal (-want +got):\n%s", diff)
		}
	})
}
