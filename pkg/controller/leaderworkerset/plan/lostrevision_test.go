// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLostRevisionIsLookedForAsOne has leader pods of different ages, all of which wait for one revision. What counts is for how long the
// revision is missing.
func TestLostRevisionIsLookedForAsOne(t *testing.T) {
	for name, c := range map[string]struct {
		ages []time.Duration
		gang GangProvider
		want time.Duration
	}{
		"a new pod":                        {ages: []time.Duration{3 * time.Second}, want: 6 * time.Second},
		"a new pod beside an old one":      {ages: []time.Duration{3 * time.Second, time.Hour}, want: 30 * time.Second},
		"the same, with gangs":             {ages: []time.Duration{3 * time.Second, time.Hour}, gang: GangVolcano, want: 30 * time.Second},
		"a pod of a clock that is ahead":   {ages: []time.Duration{-time.Minute}, want: 15 * time.Second},
		"two pods of such a clock":         {ages: []time.Duration{-time.Minute, time.Second}, want: 2 * time.Second},
		"the same, the first one for long": {ages: []time.Duration{-time.Minute, 20 * time.Second}, want: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, int32(len(c.ages)), 3)
			f.Gang = c.gang
			for i, age := range c.ages {
				f.forgetWorkers(int32(i))
				leader := f.leader(int32(i))
				leader.Revision, leader.Created = "unknown", metav1.NewTime(f.Now.Add(-age))
			}
			if p := f.stabilize(); p.RequeueAfter != c.want {
				t.Errorf("the next decision is due after %v, want %v", p.RequeueAfter, c.want)
			}
		})
	}
}
