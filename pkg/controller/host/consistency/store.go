// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consistency remembers own writes until caches show them.
package consistency

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// maxLag is the longest time for which a sync is put off because an informer lags. A store that was restored from a backup counts from
// an earlier version, and what we wait for may never come. Going on is safe: it can only cost refused requests, because
// status writes carry a resource version, creations a fixed name, and deletions a UID.
const maxLag = 30 * time.Second

// Versioned is a cache that knows the resource version of the last object it was given.
type Versioned interface {
	LastStoreSyncResourceVersion() string
}

// ConsistencyStore remembers what was written for an owner until the informers have shown it, so that no decision is made on a
// snapshot older than the last one's effects. Versions are compared per resource only: two API servers count apart.
type ConsistencyStore struct {
	clock  clock.PassiveClock
	caches map[string]Versioned

	mu     sync.Mutex
	owners map[cache.ObjectName]*writes
}

type writes struct {
	last     time.Time
	versions map[string]string
	deleted  sets.Set[types.UID]
}

// NewConsistencyStore returns a store for the resources whose caches are given by name.
func NewConsistencyStore(c clock.PassiveClock, caches map[string]Versioned) *ConsistencyStore {
	return &ConsistencyStore{clock: c, caches: caches, owners: map[cache.ObjectName]*writes{}}
}

// Wrote remembers the resource version that a write returned.
func (w *ConsistencyStore) Wrote(owner cache.ObjectName, resource, version string) {
	w.remember(owner, func(of *writes) {
		if later, err := resourceversion.CompareResourceVersion(version, of.versions[resource]); err != nil || later > 0 {
			of.versions[resource] = version
		}
	})
}

// Deleted remembers that the deletion of a child was accepted.
func (w *ConsistencyStore) Deleted(owner cache.ObjectName, child types.UID) {
	w.remember(owner, func(of *writes) { of.deleted.Insert(child) })
}

// Forget drops everything about an owner.
func (w *ConsistencyStore) Forget(owner cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.owners, owner)
}

// VersionsShown reports whether the caches have come to the versions that were written for the owner. Only what is read
// from them after the answer is sure to show these writes.
func (w *ConsistencyStore) VersionsShown(owner cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	of, found := w.owners[owner]
	if !found || w.givenUp(of) {
		return true
	}
	for resource, version := range of.versions {
		// Without two well-formed versions there is nothing to wait for.
		order, err := resourceversion.CompareResourceVersion(w.caches[resource].LastStoreSyncResourceVersion(), version)
		if err == nil && order < 0 {
			return false
		}
	}
	return true
}

// Child is a child as a cache shows it.
type Child struct {
	// UID of the child.
	UID types.UID
	// Deleting means that the child is being deleted.
	Deleting bool
}

// ChildrenOf returns objects as children.
func ChildrenOf[T metav1.Object](objects []T) []Child {
	out := make([]Child, 0, len(objects))
	for _, object := range objects {
		out = append(out, Child{UID: object.GetUID(), Deleting: object.GetDeletionTimestamp() != nil})
	}
	return out
}

// DeletionsShown reports whether these children, read after VersionsShown, show the deletions too. If so, all is forgotten
// that was written for the owner.
func (w *ConsistencyStore) DeletionsShown(owner cache.ObjectName, children []Child) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	of, found := w.owners[owner]
	if !found {
		return true
	}
	for _, child := range children {
		if of.deleted.Has(child.UID) && !child.Deleting && !w.givenUp(of) {
			return false
		}
	}
	delete(w.owners, owner)
	return true
}

func (w *ConsistencyStore) givenUp(of *writes) bool { return w.clock.Since(of.last) >= maxLag }

func (w *ConsistencyStore) remember(owner cache.ObjectName, what func(*writes)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of, found := w.owners[owner]
	if !found {
		of = &writes{versions: map[string]string{}, deleted: sets.New[types.UID]()}
		w.owners[owner] = of
	}
	of.last = w.clock.Now()
	what(of)
}
