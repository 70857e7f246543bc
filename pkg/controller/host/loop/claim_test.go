// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// TestClaims has decisions that are made once more after a claim, and decisions that wait for caches.
func TestClaims(t *testing.T) {
	lag := queue.Caches(queue.LagRetry)
	for name, tc := range map[string]struct {
		behind, claims []bool
		want           []string
		due            queue.Due
	}{
		"a claim that succeeds":                        {claims: []bool{false}, want: []string{"decide", "claim", "apply", "conclude"}},
		"a claim after which is decided once more":     {claims: []bool{true}, want: []string{"decide", "claim", "decide", "apply", "conclude"}},
		"a claim that is not made twice":               {claims: []bool{true, true}, want: []string{"decide", "claim", "decide", "apply", "conclude"}},
		"a plan that waits for caches":                 {behind: []bool{true}, claims: []bool{false}, want: []string{"decide"}, due: lag},
		"a claim that leaves a plan that waits for it": {behind: []bool{false, true}, claims: []bool{true}, want: []string{"decide", "claim", "decide"}, due: lag},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.behind, r.claims, r.left = tc.behind, tc.claims, outcome{Owner: r.cached}
			r.Host.Consistency.Wrote(key, "jobs", "4")
			due, err := r.Sync(t.Context(), key)
			if err != nil && !errors.Is(err, errRefused) || due != tc.due {
				t.Errorf("due %+v, error %v; want %+v", due, err, tc.due)
			}
			r.steps = r.steps[slices.Index(r.steps, "decide"):]
			r.want(t, tc.want...)
		})
	}
}
