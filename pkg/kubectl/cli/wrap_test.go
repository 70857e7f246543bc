// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	for name, tc := range map[string]struct {
		width             int
		text, first, rest string
		want              []string
	}{
		"what fits is one line":         {width: 20, text: "a b c", first: "- ", rest: "  ", want: []string{"- a b c"}},
		"lines hang":                    {width: 10, text: "one two three four", first: "- ", rest: "  ", want: []string{"- one two", "  three", "  four"}},
		"a line may be full":            {width: 9, text: "one two", first: "- ", rest: "  ", want: []string{"- one two"}},
		"a long word is left whole":     {width: 6, text: "a longer-than-this b", first: "- ", rest: "  ", want: []string{"- a", "  longer-than-this", "  b"}},
		"a long first word stays there": {width: 6, text: "longer-than-this", first: "- ", rest: "  ", want: []string{"- longer-than-this"}},
		"in a file nothing is wrapped":  {text: "one two three four", first: "- ", rest: "  ", want: []string{"- one two three four"}},
		"no text is the beginning":      {width: 6, first: "- ", rest: "  ", want: []string{"- "}},
		"paint takes no room":           {width: 9, text: "one two", first: "\x1b[31m- ", rest: "  ", want: []string{"\x1b[31m- one two"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Terminal{Width: tc.width}.Wrap(tc.text, tc.first, tc.rest)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFold(t *testing.T) {
	for name, tc := range map[string]struct {
		width             int
		text, first, rest string
		want              []string
	}{
		"a long word is broken":                {width: 12, text: "a longer-than-this b", first: "- ", rest: "  ", want: []string{"- a", "  longer-tha", "  n-this b"}},
		"paint ends with each line":            {width: 12, text: "\x1b[31mone two three\x1b[0m x", first: "- ", rest: "  ", want: []string{"- \x1b[31mone two\x1b[0m", "  \x1b[31mthree\x1b[0m x"}},
		"no indent where there is no room":     {width: 9, text: "one two three", first: "  ", rest: "  ", want: []string{"one two", "three"}},
		"a long word after others is broken":   {width: 5, text: "ab 東京東京 c", want: []string{"ab", "東京", "東京", "c"}},
		"in a file nothing is broken":          {text: "one  two", first: "- ", rest: "  ", want: []string{"- one  two"}},
		"a painted word that is broken":        {width: 4, text: "\x1b[31mabcdef\x1b[0m", want: []string{"\x1b[31mabcd\x1b[0m", "\x1b[31mef\x1b[0m"}},
		"what is as wide as the line is whole": {width: 9, text: "one two", first: "  ", rest: "", want: []string{"  one two"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Terminal{Width: tc.width}.Fold(tc.text, tc.first, tc.rest)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}
