// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
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

func TestOutput(t *testing.T) {
	data := struct {
		Name  string `json:"name"`
		Count int    `json:"count,omitempty"`
	}{Name: "train"}
	for name, tc := range map[string]struct {
		flags         []string
		want, wantErr string
	}{
		"JSON":           {flags: []string{"-o", "json"}, want: "{\n  \"name\": \"train\"\n}\n"},
		"YAML":           {flags: []string{"--output=yaml"}, want: "name: train\n"},
		"another format": {flags: []string{"-o", "wide"}, wantErr: `--output: must be one of json, yaml, html, not "wide"`},
	} {
		t.Run(name, func(t *testing.T) {
			var o Output
			cmd := &cobra.Command{}
			o.AddFlags(cmd, "html")
			if err := cmd.ParseFlags(tc.flags); err != nil {
				t.Fatal(err)
			}
			message := ""
			if err := o.Validate(); err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.wantErr, message); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if tc.wantErr != "" {
				return
			}
			var out strings.Builder
			if err := o.Print(&out, data); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}
