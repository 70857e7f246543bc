// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCut(t *testing.T) {
	for name, tc := range map[string]struct {
		width      int
		line, want string
	}{
		"a line that fits is left alone":               {width: 5, line: "train", want: "train"},
		"a longer line is cut":                         {width: 4, line: "train", want: "tra…"},
		"without a terminal nothing is cut":            {width: 0, line: "train", want: "train"},
		"characters count, not bytes":                  {width: 4, line: "└─ä", want: "└─ä"},
		"wide characters take two columns":             {width: 6, line: "東京大阪", want: "東京…"},
		"a wide character that fits stays":             {width: 4, line: "東京", want: "東京"},
		"combining characters take no room":            {width: 3, line: "e\u0301e\u0301e\u0301", want: "e\u0301e\u0301e\u0301"},
		"paint takes no room":                          {width: 5, line: "\x1b[31mtrain\x1b[0m", want: "\x1b[31mtrain\x1b[0m"},
		"paint that a cut leaves open is ended":        {width: 4, line: "\x1b[31mtrain\x1b[0m", want: "\x1b[31mtra…\x1b[0m"},
		"paint that is over before the cut stays over": {width: 4, line: "\x1b[31ma\x1b[0mtrain", want: "\x1b[31ma\x1b[0mtr…"},
		"a bracket that is no sequence counts as text": {width: 2, line: "a\x1b[b", want: "a\x1b…"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Terminal{Width: tc.width}.Cut(tc.line)); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAlign(t *testing.T) {
	got := Align([][]string{
		{"NAME", "STATE", "NODE"},
		{"a", Terminal{Colors: true}.Paint(Bad, "Failed"), ""},
		{"a row of one cell takes the room that it needs"},
		{"longer", "ok", "n"},
		{"東京", "ok", "n"},
	})
	want := []string{
		"NAME    STATE   NODE",
		"a       \x1b[31mFailed\x1b[0m",
		"a row of one cell takes the room that it needs",
		"longer  ok      n",
		"東京    ok      n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0": Number(0), "999": Number(999), "1,000": Number(1000), "-1,000": Number(-1000), "-100": Number(-100), "12,345,678": Number(12345678),
		"1 pod": Count(1, "pod"), "0 pods": Count(0, "pod"), "10,000 pods": Count(10000, "pod"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain text stays":              {text: "bad node, ask Zoë", want: "bad node, ask Zoë"},
		"lines become one":              {text: " first\n\tsecond\r\n", want: "first second"},
		"escape sequences do no harm":   {text: "\x1b[2Jgone\x1b]0;title\x07", want: "[2Jgone]0;title"},
		"direction marks are taken out": {text: "abc\u202Etxt", want: "abctxt"},
		"broken UTF-8 is taken out":     {text: "a\xffb", want: "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Clean(tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
