// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// maxNote is the longest note that the events API accepts, in bytes.
const maxNote = 1024

func TestNoteIsLimited(t *testing.T) {
	const head, tail = "ada asked to restart the set", " (attempt 3)"
	cases := map[string]struct {
		reason string
		want   func(string) bool
	}{
		"a reason that just fits is whole": {
			strings.Repeat("a", maxNote-len(head)-len(tail)-len(": ")),
			func(got string) bool { return len(got) == maxNote && !strings.Contains(got, "...") },
		},
		"one byte more is cut": {
			strings.Repeat("a", maxNote-len(head)-len(tail)-len(": ")+1),
			func(got string) bool { return len(got) == maxNote && strings.HasSuffix(got, "aaa..."+tail) },
		},
		"a long reason in characters of three bytes is cut between two of them": {
			strings.Repeat("語", 1024),
			func(got string) bool { return len(got) > maxNote-3 && strings.HasSuffix(got, "語..."+tail) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := provider.EventNote(head, tc.reason, tail)
			if len(got) > maxNote || !utf8.ValidString(got) || !strings.HasPrefix(got, head+": ") || !tc.want(got) {
				t.Errorf("got %d bytes: %q", len(got), got)
			}
		})
	}
}
