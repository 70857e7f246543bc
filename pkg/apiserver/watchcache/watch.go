// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

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
