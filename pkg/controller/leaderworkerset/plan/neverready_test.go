// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// TestUpdatesOfGroupsThatAreNeverReady updates a set more often than revisions are kept, and no group is ever ready. During each update
// all groups are lost, and the leader StatefulSet creates leader pods that the update has not reached at its first revision.
func TestUpdatesOfGroupsThatAreNeverReady(t *testing.T) {
	const updates = maxUnused + 3
	for name, tc := range map[string]struct {
		limit                        *int32
		replicas, unavailable, surge int32
	}{
		"without a history":     {nil, 1, 1, 0},
		"with a history of two": {ptr.To[int32](2), 3, 3, 0},
		"with a surge":          {nil, 3, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(set *leaderworkersetv1.LeaderWorkerSet) {
				rolling(tc.replicas, tc.unavailable, tc.surge, 0)(set)
				set.Spec.RevisionHistoryLimit = tc.limit
			}).stabilize()
			first := w.current
			w.leader = w.leader.DeepCopy()
			w.leader.Status.CurrentRevision = "s-1" // which does not change before all groups are ready
			atFirst := false
			for i := range updates {
				w.spec(w.image(fmt.Sprint("update-", i)))
				for passes := range 4 { // in the last ones the update has come further
					w.step()
					all := w.all()
					clear(w.pods)
					w.statefulSetController()
					for _, lost := range all {
						if !w.hasRevision(w.pods[lost].key) {
							t.Fatalf("update %d: group %d is created at revision %s, which is gone", i, lost, w.pods[lost].key)
						}
						atFirst = atFirst || w.pods[lost].key == first && i > maxUnused && passes < 2
					}
				}
				for range 3 { // groups that are not ready for very long delay no update
					w.stabilize()
					w.now = w.now.Add(time.Hour)
				}
				w.stabilize()
				if w.current != first || !w.hasRevision(first) {
					t.Fatalf("update %d: the StatefulSet creates pods at %s; it began with %s, which is there: %t", i, w.current, first, w.hasRevision(first))
				}
			}
			if !atFirst {
				t.Error("no group is created at the first revision, so that this shows nothing")
			}
			if n := len(w.revisions); n > maxUnused+4 {
				t.Errorf("%d revisions are kept", n)
			}
		})
	}
}

// hasRevision returns whether there is a revision with a key.
func (w *world) hasRevision(key string) bool {
	return slices.ContainsFunc(w.revisions, func(r *appsv1.ControllerRevision) bool { return r.Labels[leaderworkersetv1.RevisionKey] == key })
}
