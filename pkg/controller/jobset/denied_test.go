// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"
	"time"
)

// TestDeniedJobsAreAskedForSeldom has a set of 50 Jobs that the API does not accept, and something of the set that changes every half a
// second, and every two seconds after the first minute: each change leads to a pass.
func TestDeniedJobsAreAskedForSeldom(t *testing.T) {
	const jobs, minutes = 50, 10
	for name, tc := range map[string]struct {
		deny func(name string) error
		// first is how many requests are denied in the first minute at most, and later in each other one.
		first, later int
	}{
		"a policy denies each of them": {denied, 2 * jobs, 10},
		"a quota is used up":           {overQuota, 2, 1},
		"the template is invalid":      {invalidTemplate, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPasses(t, sizedSet(jobs), tc.deny)
			all := make([]int, minutes)
			for minute, every := 0, 500*time.Millisecond; minute < minutes; minute, every = minute+1, 2*time.Second {
				for range time.Minute / every {
					all[minute] += len(r.passAfter(t, every))
					if r.last == nil {
						t.Fatal("a pass without an error")
					}
				}
			}
			t.Logf("denied by minute: %v", all)
			for minute, n := range all {
				most := tc.later
				if minute == 0 {
					most = tc.first
				}
				if n > most {
					t.Errorf("%d requests were denied in minute %d, want %d at most", n, minute, most)
				}
			}
			r.refused = func(string) error { return nil }
			for range 4 * 60 {
				r.passAfter(t, time.Second)
			}
			diff(t, "Jobs that exist four minutes after the reason has gone", jobs, r.exist())
		})
	}
}
