// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

const (
	// maxListBytes is how many bytes of stored objects lists read from etcd at the same time. Decoded, they take about eight
	// times as much. A larger list runs alone.
	maxListBytes = 8 << 20
	// maxUpdateBytes is how many bytes of stored objects are updated at the same time, counting only objects of at least
	// minUpdateBytes. An update holds several decoded copies of the object, and the names of all of its fields several times.
	maxUpdateBytes = 2 << 20
	minUpdateBytes = 64 << 10
	// retrySeconds is when a client whose request had to wait for too long should try again.
	retrySeconds = 1
)

// Decorate returns a getter whose resources have a watch cache that shares parts between versions, in front of an etcd
// from which few large lists are read at the same time. Unless it is nil, wrap puts something between the two. The
// watch cache serves nearly all lists. When it is not ready or behind, they all go to etcd, just when the server has
// the least to spare.
func Decorate(next generic.RESTOptionsGetter, codec *Sharing, cached func(schema.GroupResource) bool,
	wrap Wrapper) generic.RESTOptionsGetter {
	if wrap == nil {
		wrap = func(store storage.Interface, _ *storagebackend.ConfigForResource) (storage.Interface, error) {
			return store, nil
		}
	}
	return getter{next: next, codec: codec, cached: cached, wrap: wrap, reads: semaphore.NewWeighted(maxListBytes),
		updates: semaphore.NewWeighted(maxUpdateBytes)}
}

// Wrapper puts something in front of an etcd, which has the configuration. If that is not the one that it needs, it returns an error, and
// no store is served without it.
type Wrapper func(storage.Interface, *storagebackend.ConfigForResource) (storage.Interface, error)

type getter struct {
	next   generic.RESTOptionsGetter
	codec  *Sharing
	cached func(schema.GroupResource) bool
	wrap   Wrapper
	// reads and updates are shared by all resources.
	reads, updates *semaphore.Weighted
}

// GetRESTOptions returns the options of the resource with such a store.
func (g getter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.next.GetRESTOptions(resource, example)
	if err == nil {
		options.Decorator = g.newStore(g.cached(resource))
	}
	return options, err
}

func (g getter) newStore(cached bool) generic.StorageDecorator {
	return func(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, indexerFuncs storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		raw, destroyRaw, err := generic.NewRawStorage(config, newFunc, newListFunc, prefix)
		if err != nil {
			return raw, destroyRaw, err
		}
		limited := &bounded{Interface: raw, codec: g.codec, reads: g.reads, updates: g.updates}
		store, err := g.wrap(limited, config)
		if err != nil {
			destroyRaw()
			return nil, func() {}, err
		}
		if !cached {
			return &present{Interface: store}, destroyRaw, nil
		}
		c, err := cacher.NewCacherFromConfig(cacher.Config{
			Storage: store, Versioner: storage.APIObjectVersioner{}, GroupResource: config.GroupResource,
			EventsHistoryWindow: config.EventsHistoryWindow, ResourcePrefix: prefix, KeyFunc: keyFunc, NewFunc: newFunc, NewListFunc: newListFunc,
			GetAttrsFunc: attributes, IndexerFuncs: indexerFuncs, Indexers: indexers, Codec: config.Codec,
		})
		if err != nil {
			destroyRaw()
			return nil, func() {}, fmt.Errorf("creating the watch cache of %s: %w", config.GroupResource, err)
		}
		ready := c.Ready
		limited.ready.Store(&ready)
		delegator := cacher.NewCacheDelegator(c, store)
		return &present{Interface: &initial{
				Interface: delegator, cache: c, newFunc: newFunc, newListFunc: newListFunc, encodings: newEncodings(),
			}}, sync.OnceFunc(func() {
				delegator.Stop()
				c.Stop()
				destroyRaw()
			}), nil
	}
}

// bounded is an etcd in which objects of so many bytes are listed, and updated, at the same time.
type bounded struct {
	storage.Interface
	codec          *Sharing
	reads, updates *semaphore.Weighted
	// ready returns whether the watch cache is filled; nil until there is one.
	ready atomic.Pointer[func() bool]
}

// GetList waits until there is room for the list. What it returns shares parts with the watch cache, as lists from there do.
func (s *bounded) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	size := s.listBytes(opts.Predicate.Limit)
	if s.reads.Acquire(ctx, size) != nil {
		return errors.NewTooManyRequests("too many large lists at the same time; the watch cache is not ready or behind", retrySeconds)
	}
	defer s.reads.Release(size)
	if err := s.Interface.GetList(ctx, key, opts, list); err != nil {
		return err
	}
	return meta.EachListItem(list, func(obj runtime.Object) error {
		s.codec.share(obj)
		return nil
	})
}

// GuaranteedUpdate waits until there is room for the update of a large object.
func (s *bounded) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	if size := min(maxUpdateBytes, s.codec.size(cached)); size >= minUpdateBytes {
		if s.updates.Acquire(ctx, size) != nil {
			return errors.NewTooManyRequests("too many updates of large objects at the same time", retrySeconds)
		}
		defer s.updates.Release(size)
	}
	return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cached)
}

// listBytes estimates the bytes of a list from those of all objects that the watch caches hold. Before they hold all, and
// without them, a list counts as large.
func (s *bounded) listBytes(limit int64) int64 {
	if ready := s.ready.Load(); ready == nil || !(*ready)() {
		return maxListBytes
	}
	objects, total := s.codec.bytes()
	if limit > 0 && limit < objects {
		total = total / objects * limit
	}
	return min(maxListBytes, total)
}

// present is a store that begins no watch in the future. A client comes with such a resource version when it has watched another store: one
// that is lost, or that was newer before an administrator rolled it back. Neither etcd nor the watch cache refuses it, and the client would
// see nothing until the store has that version. The error makes it list again.
type present struct {
	storage.Interface
	// reached is a version that the store has.
	reached atomic.Uint64
}

// Watch implements storage.Interface.
func (s *present) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	version, err := s.Versioner().ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if version > s.reached.Load() {
		// The read begins after whoever gave the client its version has read it from this store.
		current, err := s.GetCurrentResourceVersion(ctx)
		if err != nil {
			return nil, err
		}
		if version > current {
			return nil, errors.NewResourceExpired(fmt.Sprintf("the resource version %d is of another store or of the time before this one was "+
				"restored; it is at %d", version, current))
		}
		s.reach(current)
	}
	return s.Interface.Watch(ctx, key, opts)
}

func (s *present) reach(version uint64) {
	for known := s.reached.Load(); version > known && !s.reached.CompareAndSwap(known, version); known = s.reached.Load() {
	}
}
