// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
