// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// Wrap puts the guard in front of a store.
func (g *Guard) Wrap(store storage.Interface, config *storagebackend.ConfigForResource) (storage.Interface, error) {
	return guarded{Interface: store, guard: g, size: encodedSize(config.Codec)}, nil
}

// smallGrowth is by how many bytes a change of spec may make an object larger while space is short: enough to suspend it.
// Queues take their quota back that way.
const smallGrowth = 256

// guarded is a store that keeps a reserve.
type guarded struct {
	storage.Interface
	guard *Guard
	// size returns the bytes of an object as it is stored.
	size func(runtime.Object) int
}

// encodedSize measures with the codec of a store. What cannot be encoded is not stored either.
func encodedSize(codec runtime.Codec) func(runtime.Object) int {
	return func(obj runtime.Object) int {
		data, err := runtime.Encode(codec, obj)
		if err != nil {
			return 0
		}
		return len(data)
	}
}

// Create refuses when space is short.
func (s guarded) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.guard.grow(); err != nil {
		return err
	}
	return s.guard.written(s.Interface.Create(ctx, key, obj, out, ttl))
}

// GuaranteedUpdate refuses changes of spec that need more space when it is short.
func (s guarded) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	update := func(input runtime.Object, res storage.ResponseMeta) (runtime.Object, *uint64, error) {
		before := generation(input)
		output, ttl, err := tryUpdate(input, res)
		switch {
		case err != nil || !mayGrow(ctx, output):
		case generation(output) != before:
			err = s.guard.change(func() bool { return s.size(output) <= s.size(input)+smallGrowth })
		default:
			err = s.guard.touch()
		}
		return output, ttl, err
	}
	return s.guard.written(s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, update, cached))
}

// mayGrow leaves out what must go on while space is short: objects on their way to deletion, and subresources, whose requests
// are a few bytes (operators suspend and cancel with them).
func mayGrow(ctx context.Context, obj runtime.Object) bool {
	if info, ok := request.RequestInfoFrom(ctx); ok && info.Subresource != "" {
		return false
	}
	accessor, err := meta.Accessor(obj)
	return err == nil && accessor.GetDeletionTimestamp() == nil
}

func generation(obj runtime.Object) int64 {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return 0
	}
	return accessor.GetGeneration()
}
