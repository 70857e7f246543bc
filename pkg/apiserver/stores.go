// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
)

// Stores decorate the store of each resource.
type Stores struct {
	// Codec encodes stored objects, and shares the parts that versions of an object have in common.
	Codec *watchcache.Sharing
	// Cached returns whether a resource has a watch cache.
	Cached func(schema.GroupResource) bool
	// Unreadable takes the objects that cannot be read.
	Unreadable *unreadable.Objects
	// StoreCheck keeps the server from answering for the wrong store; nil if that is switched off.
	StoreCheck *storecheck.Guard
	// Space keeps a reserve in the store.
	Space *space.Guard
	// Record records the runs of objects; nil if that is off.
	Record watchcache.Wrapper
}

// Decorate returns a getter like the next one with decorated stores. The watch cache is between the two lists of decorators, and what
// bounds reads and updates of etcd is below them.
func (s Stores) Decorate(next generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	above, below := s.layers()
	return decorated{next: watchcache.Decorate(next, s.Codec, s.Cached, join(below)), wrap: join(above), unreadable: s.Unreadable}
}

// layers returns the decorators above and below the watch cache, the outermost ones first.
func (s Stores) layers() (above, below []watchcache.Wrapper) {
	var awaitCache, check watchcache.Wrapper
	if s.StoreCheck != nil {
		awaitCache, check = s.StoreCheck.AwaitCache, s.StoreCheck.Wrap
	}
	above = []watchcache.Wrapper{
		// Requests to a full store are refused before anything else is asked.
		s.Space.Wrap,
		// A run is recorded before its object is removed, with what the store removes.
		s.Record,
		// The server starts while the store is refused, and its watch caches are still empty.
		awaitCache,
		// The watch cache has placeholders for objects that cannot be read. They never reach a writer.
		unreadable.Serve,
	}
	below = []watchcache.Wrapper{
		// The watch cache takes answers only from the right store.
		check,
		// Nothing that etcd returns makes a list or a watch fail.
		unreadable.Wrap,
	}
	return above, below
}

// join returns a wrapper that applies the wrappers of a list. A wrapper that is nil is left out.
func join(wrappers []watchcache.Wrapper) watchcache.Wrapper {
	return func(store storage.Interface, config *storagebackend.ConfigForResource) (_ storage.Interface, err error) {
		for _, wrap := range slices.Backward(wrappers) {
			if wrap == nil {
				continue
			}
			if store, err = wrap(store, config); err != nil {
				return nil, err
			}
		}
		return store, nil
	}
}

// decorated wraps the stores of the next getter.
type decorated struct {
	next       generic.RESTOptionsGetter
	wrap       watchcache.Wrapper
	unreadable *unreadable.Objects
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (d decorated) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := d.next.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	newStore := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		config = d.unreadable.Tolerate(config, prefix, newFunc)
		store, destroy, err := newStore(config, prefix, keyFunc, newFunc, newListFunc, attributes, trigger, indexers)
		if err != nil {
			return store, destroy, err
		}
		wrapped, err := d.wrap(store, config)
		if err != nil {
			destroy()
			return nil, func() {}, err
		}
		return wrapped, destroy, nil
	}
	return options, nil
}
