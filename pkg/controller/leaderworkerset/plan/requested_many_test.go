// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// TestRequestOfVeryManyGroups stores a part of the leaders at a time. Another server sets the times of pods: by its
// clock, all leaders are younger than the request, or their replacements are older.
func TestRequestOfVeryManyGroups(t *testing.T) {
	const groups = 2300
	for name, ahead := range map[string]time.Duration{"one clock": 0, "the clock of pods is ahead": time.Hour, "the clock of pods is behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, groups, 1)
			f.Set.Spec.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{MaxUnavailable: ptr.To(intstr.FromString("100%"))}
			for i := range f.Leaders {
				f.Leaders[i].Created = metav1.NewTime(f.Now.Add(ahead))
			}
			f.stabilize()
			request(f)
			restarts := map[types.UID]int{}
			for pass := 0; f.Set.Status.Restart != nil; pass++ {
				if pass > 100 {
					t.Fatalf("%d of %d groups were restarted", len(restarts), groups)
				}
				f.later(2 * time.Second)
				p := f.pass()
				if r := f.Set.Status.Restart; r != nil && len(r.Leaders) > maxRequestedLeaders {
					t.Fatalf("%d leaders are stored", len(r.Leaders))
				}
				gone := map[types.UID]bool{}
				for _, d := range p.DeleteLeaders {
					restarts[d.UID]++
					gone[d.UID] = true
				}
				for i := range f.Leaders {
					if l := &f.Leaders[i]; gone[l.UID] {
						l.UID, l.Created = types.UID(fmt.Sprintf("%s/2", l.Name)), metav1.NewTime(f.Now.Add(ahead))
					}
				}
			}
			if len(restarts) != groups {
				t.Errorf("%d groups were restarted, want %d", len(restarts), groups)
			}
			for uid, n := range restarts {
				if n != 1 || uid[len(uid)-1] != '1' {
					t.Fatalf("leader %s was deleted %d times", uid, n)
				}
			}
		})
	}
}
