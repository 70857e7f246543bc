// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
	"testing"
	"time"
)

func TestNoteAdopted(t *testing.T) {
	for n, want := range map[int]string{
		1:  "Adopted Service 0, which had no controller",
		2:  "Adopted Service 0, Service 1, which had no controller",
		12: "Adopted Service 0, Service 1, Service 2, Service 3, Service 4, Service 5, Service 6, Service 7, Service 8, Service 9 and 2 more, which had no controller",
	} {
		if got := NoteAdopted(n, func(i int) string { return "Service " + strconv.Itoa(i) }); got != want {
			t.Errorf("%d adoptions: %q, want %q", n, got, want)
		}
	}
}

func TestRefusedSince(t *testing.T) {
	before, now := time.Unix(1, 0), time.Unix(2, 0)
	for name, tc := range map[string]struct {
		since                time.Time
		refused, interrupted bool
		want                 time.Time
	}{
		"all was accepted":                 {since: before},
		"the first refusal":                {refused: true, want: now},
		"another refusal":                  {since: before, refused: true, want: before},
		"interrupted before all was tried": {since: before, interrupted: true, want: before},
		"interrupted, nothing refused":     {interrupted: true},
	} {
		if got := RefusedSince(tc.since, now, tc.refused, tc.interrupted); !got.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
