// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func TestWhyWorkloadsCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("list", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(workloads.GroupResource(), "", nil)
		})
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(time.Minute)
			got, why := f.Availability()
			diff(t, "availability", Unknown, got)
			diff(t, "reason", `workloads (workloads.kueue.x-k8s.io is forbidden: <nil>)`, why)
		})
	})
}

// Who does not know whether Kueue is served says why.
func TestWhyNothingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.answer.Store(&away)
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(time.Minute)
			got, why := f.Availability()
			diff(t, "availability", Unknown, got)
			diff(t, "reason", "discovery (no endpoints)", why)
		})
	})
}

// Workloads that have been read once are not known for ever: what Kueue evicted since then would still hold quota.
func TestOutdatedWorkloadsAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(workload("job-etl-0", "child"))
		first := watch.NewFake()
		var begun, refused atomic.Bool
		f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependWatchReactor("workloads", func(clienttesting.Action) (bool, watch.Interface, error) {
			switch {
			case refused.Load():
				return true, nil, apierrors.NewForbidden(workloads.GroupResource(), "", nil)
			case begun.CompareAndSwap(false, true):
				return true, first, nil
			}
			return false, nil, nil
		})
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(time.Second)
			f.expect(t, "while the Workloads are watched", Served)
			refused.Store(true)
			first.Stop()
			f.run(outdatedAfter - groupPoll)
			f.expect(t, "during a short outage", Served)
			f.run(3 * groupPoll)
			got, why := f.Availability()
			diff(t, "availability", Unknown, got)
			diff(t, "reason", `workloads (workloads.kueue.x-k8s.io is forbidden: <nil>)`, why)
			if _, known := f.Holding(cache.NewObjectName("default", "etl")); known {
				t.Error("Workloads that are not followed are known")
			}
			if w, known := f.Of("child"); known || w != nil {
				t.Errorf("the Workload of a child that is not followed is known: %t, %v", known, w)
			}
			diff(t, "turns", 2, f.turns) // Served, Unknown
			refused.Store(false)
			f.run(2 * groupPoll)
			f.expect(t, "once they are watched again", Served)
			diff(t, "turns", 3, f.turns)
		})
	})
}

// A watch that begins again after an outage delivers the changes of that time one by one. Until then, the cache has a state
// of the past.
func TestWorkloadsAreUnknownUntilTheWatchHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(workload("job-etl-0", "child"))
		watches := []*watch.FakeWatcher{watch.NewFake(), watch.NewFake(), watch.NewFake()}
		var begun atomic.Int32
		var refused atomic.Bool
		f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependWatchReactor("workloads", func(clienttesting.Action) (bool, watch.Interface, error) {
			if refused.Load() {
				return true, nil, apierrors.NewServiceUnavailable("no endpoints")
			}
			return true, watches[begun.Add(1)-1], nil
		})
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(time.Second)
			outage := func(n int) {
				refused.Store(true)
				watches[n].Stop()
				f.run(outdatedAfter + groupPoll)
				refused.Store(false)
				for begun.Load() == int32(n+1) {
					f.run(10 * time.Millisecond)
				}
				f.expect(t, "when the watch has just begun again", Unknown)
				if _, known := f.Of("child"); known {
					t.Error("what the cache had before is known")
				}
			}
			outage(0)
			f.run(groupPoll + catchUp)
			f.expect(t, "later", Served)
			outage(1)
			watches[2].Stop()
			refused.Store(true)
			f.run(groupPoll + catchUp)
			f.expect(t, "once the watch has ended again", Unknown)
		})
	})
}
