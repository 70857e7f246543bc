// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package consistency

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

// shown is a cache that has seen a version.
type shown string

func (s shown) LastStoreSyncResourceVersion() string { return string(s) }

func TestConsistencyStoreWaitsForWrites(t *testing.T) {
	one, other := cache.NewObjectName("ns", "one"), cache.NewObjectName("ns", "other")
	child := func(uid string, terminating bool) metav1.Object {
		meta := &metav1.ObjectMeta{UID: types.UID(uid)}
		if terminating {
			meta.DeletionTimestamp = &metav1.Time{}
		}
		return meta
	}
	for name, tc := range map[string]struct {
		jobs, sets shown
		write      func(*ConsistencyStore)
		children   []metav1.Object
		after      time.Duration
		want       bool
	}{
		"nothing was written": {jobs: "5", sets: "5", write: func(*ConsistencyStore) {}, want: true},
		"the cache is behind the write": {
			jobs: "99", sets: "5", write: func(w *ConsistencyStore) { w.Wrote(one, "jobs", "100") }, want: false,
		},
		"the cache has the write": {
			jobs: "100", sets: "5", write: func(w *ConsistencyStore) { w.Wrote(one, "jobs", "100") }, want: true,
		},
		"the cache is beyond the write": {
			jobs: "1000", sets: "5", write: func(w *ConsistencyStore) { w.Wrote(one, "jobs", "999") }, want: true,
		},
		"the latest of several writes counts": {
			jobs: "100", sets: "5", write: func(w *ConsistencyStore) { w.Wrote(one, "jobs", "101"); w.Wrote(one, "jobs", "100") }, want: false,
		},
		"resources are compared with their own cache only": {
			jobs: "5", sets: "100", write: func(w *ConsistencyStore) { w.Wrote(one, "jobsets", "100") }, want: true,
		},
		"every resource counts": {
			jobs: "100", sets: "5", write: func(w *ConsistencyStore) { w.Wrote(one, "jobs", "100"); w.Wrote(one, "jobsets", "6") }, want: false,
		},
		"writes of another owner do not matter": {
			jobs: "1", sets: "1", write: func(w *ConsistencyStore) { w.Wrote(other, "jobs", "100") }, want: true,
		},
		"a version that is no number is not awaited": {
			jobs: "1", sets: "1", write: func(w *ConsistencyStore) { w.Wrote(one, "jobs", "") }, want: true,
		},
		"a deletion that the cache does not show is awaited": {
			write: func(w *ConsistencyStore) { w.Deleted(one, "a") }, children: []metav1.Object{child("a", false)}, want: false,
		},
		"a deletion has been seen when the child terminates": {
			write: func(w *ConsistencyStore) { w.Deleted(one, "a") }, children: []metav1.Object{child("a", true)}, want: true,
		},
		"a deletion has been seen when the child is gone": {
			write: func(w *ConsistencyStore) { w.Deleted(one, "a") }, children: []metav1.Object{child("b", false)}, want: true,
		},
		"a cache that lags for too long is no longer awaited": {
			jobs: "99", sets: "5", write: func(w *ConsistencyStore) { w.Wrote(one, "jobs", "100") }, after: maxLag, want: true,
		},
		"what was forgotten is not awaited": {
			jobs: "99", sets: "5", write: func(w *ConsistencyStore) { w.Wrote(one, "jobs", "100"); w.Forget(one) }, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			w := NewConsistencyStore(clock, map[string]Versioned{"jobs": tc.jobs, "jobsets": tc.sets})
			tc.write(w)
			clock.Step(tc.after)
			if got := w.VersionsShown(one) && w.DeletionsShown(one, ChildrenOf(tc.children)); got != tc.want {
				t.Errorf("shown is %t, want %t", got, tc.want)
			}
		})
	}
}
