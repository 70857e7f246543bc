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

func TestUTF8Locale(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"a common locale":              {env: map[string]string{"LANG": "en_US.UTF-8"}, want: true},
		"without the dash":             {env: map[string]string{"LC_CTYPE": "C.utf8"}, want: true},
		"the first one that is set":    {env: map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, want: false},
		"an old encoding":              {env: map[string]string{"LANG": "de_DE.ISO-8859-1"}, want: false},
		"nothing set means plain text": {want: false},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, utf8Locale(func(name string) string { return tc.env[name] })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
