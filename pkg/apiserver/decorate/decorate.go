// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decorate puts something in front of the stores of all resources.
package decorate

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// Wrapper returns what takes the place of a store, whose objects are encoded with the codec.
type Wrapper func(store storage.Interface, codec runtime.Codec) storage.Interface

// Stores returns a getter like the next one whose stores are wrapped.
func Stores(next generic.RESTOptionsGetter, wrap Wrapper) generic.RESTOptionsGetter {
	return getter{next: next, wrap: wrap}
}

type getter struct {
	next generic.RESTOptionsGetter
	wrap Wrapper
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g getter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.next.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	decorator := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, destroy, err := decorator(config, prefix, keyFunc, newFunc, newListFunc, attributes, trigger, indexers)
		if err != nil {
			return store, destroy, err
		}
		return g.wrap(store, config.Codec), destroy, nil
	}
	return options, nil
}
