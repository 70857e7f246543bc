// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
)

func TestObserveWaitsForItsWrites(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	key := cache.MetaObjectToName(set)
	if obs, wait, err := r.Observe(t.Context(), key); obs != nil || wait != 0 || err != nil {
		t.Errorf("a set that is not cached: %v %v %v", obs, wait, err)
	}
	child, foreign := newJob("js-w-0", set), newJob("js-w-1", nil)
	child.UID = "uid-child"
	for indexer, object := range map[cache.Indexer]any{
		r.caches.jobSets.GetIndexer(): set, r.caches.jobs.GetIndexer(): child, r.caches.services.GetIndexer(): service(),
	} {
		if err := indexer.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.caches.jobs.GetIndexer().Add(foreign); err != nil {
		t.Fatal(err)
	}
	obs, _, err := r.Observe(t.Context(), key)
	if err != nil || obs == nil {
		t.Fatalf("observed %v, error %v", obs, err)
	}
	diff(t, "Jobs", []*batchv1.Job{child}, obs.Jobs)
	diff(t, "Service exists", true, obs.ServiceExists)

	r.deps.Consistency.Deleted(key, "uid-child")
	obs, wait, err := r.Observe(t.Context(), key)
	if obs != nil || wait == 0 || err != nil {
		t.Errorf("with a deletion that is not shown yet: %v %v %v", obs, wait, err)
	}
	r.deps.Consistency.Wrote(key, resourceJobs, "9")
	if err := r.caches.jobs.GetIndexer().Delete(child); err != nil {
		t.Fatal(err)
	}
	r.caches.jobs.GetIndexer().Bookmark("8")
	if obs, _, _ = r.Observe(t.Context(), key); obs != nil {
		t.Error("a write that is not shown yet is not awaited")
	}
	r.caches.jobs.GetIndexer().Bookmark("9")
	if obs, _, _ = r.Observe(t.Context(), key); obs == nil {
		t.Error("a write that is shown is still awaited")
	}
}

// lateCache gets its object while it is asked for its version.
type lateCache struct {
	cache.Indexer
	object any
}

func (c lateCache) LastStoreSyncResourceVersion() string {
	if err := c.Update(c.object); err != nil {
		return ""
	}
	return "2"
}

func TestObserveWaitsForItsWritesInTheCache(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	indexer := r.caches.jobSets.GetIndexer()
	if err := indexer.Add(set); err != nil {
		t.Fatal(err)
	}
	written := set.DeepCopy()
	written.ResourceVersion = "2"
	r.deps.Consistency = consistency.NewConsistencyStore(clock.RealClock{}, map[string]consistency.Versioned{resourceJobSets: lateCache{indexer, written}})
	key := cache.MetaObjectToName(set)
	r.deps.Consistency.Wrote(key, resourceJobSets, "2")
	obs, _, err := r.Observe(t.Context(), key)
	if err != nil || obs == nil {
		t.Fatalf("observed %v, error %v", obs, err)
	}
	diff(t, "version", "2", obs.JobSet.ResourceVersion)
}
