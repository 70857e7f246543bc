// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// begin returns roles at the beginning of a rollout, all with the same limits.
func begin(initial, target []int64, surge, unavailable int64) []Rollout {
	roles := make([]Rollout, len(initial))
	for i := range roles {
		roles[i] = Rollout{Initial: initial[i], Old: initial[i], Target: target[i], Surge: surge, Unavailable: unavailable}
	}
	return roles
}

// state prints what the roles have, such as 2,4|1,1.
func state(roles []Rollout) string {
	var old, current []string
	for _, r := range roles {
		old, current = append(old, fmt.Sprint(r.Old)), append(current, fmt.Sprint(r.New))
	}
	return strings.Join(old, ",") + "|" + strings.Join(current, ",")
}

// trace returns all states of a rollout.
func trace(roles []Rollout) string {
	states := []string{state(roles)}
	for next, more := Next(roles); more && len(states) < 100; next, more = Next(roles) {
		roles = next
		states = append(states, state(roles))
	}
	return strings.Join(states, " ")
}

func TestTraces(t *testing.T) {
	type ints = []int64
	cases := map[string]struct {
		roles []Rollout
		want  string
	}{
		"two roles":          {begin(ints{2, 2}, ints{2, 2}, 1, 0), "2,2|0,0 2,2|1,1 1,1|1,1 1,1|2,2 0,0|2,2"},
		"one group per role": {begin(ints{1, 1}, ints{1, 1}, 1, 0), "1,1|0,0 1,1|1,1 0,0|1,1"},
		"roles of different sizes": {
			begin(ints{4, 2}, ints{4, 2}, 1, 0),
			"4,2|0,0 4,2|1,1 3,2|1,1 3,2|2,1 2,1|2,1 2,1|3,2 1,1|3,2 1,1|4,2 0,0|4,2",
		},
		"three roles": {
			begin(ints{4, 2, 2}, ints{4, 2, 2}, 1, 0),
			"4,2,2|0,0,0 4,2,2|1,1,1 3,2,2|1,1,1 3,2,2|2,1,1 2,1,1|2,1,1 2,1,1|3,2,2 1,1,1|3,2,2 1,1,1|4,2,2 0,0,0|4,2,2",
		},
		"two unavailable": {begin(ints{4, 4}, ints{4, 4}, 0, 2), "4,4|0,0 2,2|0,0 2,2|2,2 0,0|2,2 0,0|4,4"},
		"one unavailable": {
			begin(ints{4, 4}, ints{4, 4}, 0, 1),
			"4,4|0,0 3,3|0,0 3,3|1,1 2,2|1,1 2,2|2,2 1,1|2,2 1,1|3,3 0,0|3,3 0,0|4,4",
		},
		"surge and unavailable": {
			begin(ints{6, 6}, ints{6, 6}, 2, 1),
			"6,6|0,0 6,6|2,2 4,4|2,2 4,4|4,4 2,2|4,4 2,2|6,6 0,0|6,6",
		},
		"new sizes with surge": {
			begin(ints{10, 2}, ints{6, 8}, 2, 0),
			"10,2|0,0 8,2|0,0 6,2|0,0 6,2|2,2 4,1|2,2 4,1|3,4 4,1|4,5 2,1|4,5 2,1|5,7 2,1|6,8 0,0|6,8",
		},
		"new sizes": {
			begin(ints{2, 4}, ints{4, 2}, 1, 0),
			"2,4|0,0 2,3|0,0 1,2|0,0 1,2|1,1 1,2|2,1 1,1|2,1 1,1|3,2 1,1|4,2 0,0|4,2",
		},
		"a role is removed": {
			begin(ints{3, 3, 3}, ints{3, 3, 0}, 1, 0),
			"3,3,3|0,0,0 3,3,3|1,1,0 2,2,2|1,1,0 2,2,2|2,2,0 1,1,1|2,2,0 1,1,1|3,3,0 0,0,0|3,3,0",
		},
		"a role is added": {
			begin(ints{3, 3, 0}, ints{3, 3, 3}, 1, 0),
			"3,3,0|0,0,0 3,3,0|1,1,1 2,2,0|1,1,1 2,2,0|2,2,2 1,1,0|2,2,2 1,1,0|3,3,3 0,0,0|3,3,3",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Fields(tc.want), strings.Fields(trace(tc.roles))); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("surge of three", func(t *testing.T) {
		got := trace(begin(ints{10, 10}, ints{10, 10}, 3, 0))
		want := "3,3 8,8|3,3 8,8|5,5 5,5|8,8 3,3|8,8 3,3|10,10 0,0|10,10"
		if !strings.HasPrefix(got, "10,10|0,0 10,10|") || !strings.HasSuffix(got, want) {
			t.Errorf("got  %s\nwant …%s", got, want)
		}
	})
}
