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
