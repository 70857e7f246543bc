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
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
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
		"a terminal has a size and colors":               {term: "xterm", want: Terminal{Width: 72, Height: 20, Colors: true}},
		"colors were switched off":                       {term: "xterm", noColor: "1", want: Terminal{Width: 72, Height: 20}},
		"a dumb terminal knows neither colors nor signs": {term: "dumb", want: Terminal{Width: 72, Height: 20, ASCII: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tc.noColor)
			t.Setenv("TERM", tc.term)
			t.Setenv("LC_ALL", "C.UTF-8")
			if diff := cmp.Diff(tc.want, TerminalOf(tty)); diff != "" {
				t.Errorf("terminal (-want +got):\n%s", diff)
			}
		})
	}
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("TERM", "xterm")
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

func TestASCIIOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"a common locale":                {env: map[string]string{"LANG": "en_US.UTF-8"}},
		"without the dash":               {env: map[string]string{"LC_CTYPE": "C.utf8"}},
		"the first one that is set":      {env: map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, want: true},
		"an old encoding":                {env: map[string]string{"LANG": "de_DE.ISO-8859-1"}, want: true},
		"a dumb terminal":                {env: map[string]string{"LANG": "en_US.UTF-8", "TERM": "dumb"}, want: true},
		"nothing set means plain text":   {want: true},
		"the terminal alone says little": {env: map[string]string{"TERM": "xterm-256color"}, want: true},
	} {
		if got := asciiOnly(func(name string) string { return tc.env[name] }); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestTheFlagOverridesTheLocale(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("TERM", "xterm")
	for args, want := range map[string]bool{"": false, "--ascii": true, "--ascii=false": false} {
		f, flags := NewFactory(genericiooptions.NewTestIOStreamsDiscard()), pflag.NewFlagSet("", pflag.ContinueOnError)
		f.AddFlags(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if got := f.Terminal().ASCII; got != want {
			t.Errorf("%q: ASCII is %v, want %v", args, got, want)
		}
	}
	t.Setenv("LC_ALL", "C")
	f, flags := NewFactory(genericiooptions.NewTestIOStreamsDiscard()), pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(flags)
	if err := flags.Parse([]string{"--ascii=false"}); err != nil || f.Terminal().ASCII {
		t.Errorf("--ascii=false has no effect in the locale C (%v)", err)
	}
}
