// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// Wrap returns a storage whose answers are passed on only after a check that began after them. It is meant to be below the watch cache.
func (g *Guard) Wrap(next storage.Interface, _ *storagebackend.ConfigForResource) (storage.Interface, error) {
	return &checked{Interface: next, guard: g}, nil
}

type checked struct {
	storage.Interface
	guard *Guard
}

// verified returns the error of a storage, after a check if the storage has answered. Errors of objects are answers, too.
func (s *checked) verified(ctx context.Context, err error) error {
	if err != nil && !answered(err) {
		return err
	}
	if refused := s.guard.Verify(ctx); refused != nil {
		return refused
	}
	return err
}

// answered returns whether the error is about what etcd has said, not that it has said nothing.
func answered(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var etcd rpctypes.EtcdError
	_, transport := grpcstatus.FromError(err)
	return !transport && !errors.As(err, &etcd)
}

// Create implements storage.Interface.
func (s *checked) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return s.verified(ctx, s.Interface.Create(ctx, key, obj, out, ttl))
}

// Delete implements storage.Interface.
func (s *checked) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	return s.verified(ctx, s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts))
}

// Get implements storage.Interface.
func (s *checked) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	return s.verified(ctx, s.Interface.Get(ctx, key, opts, out))
}

// GetList implements storage.Interface. It waits while the server does not serve: the watch caches list from the
// beginning, and an error would make them wait longer than necessary.
func (s *checked) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if err := s.guard.await(ctx); err != nil {
		return err
	}
	return s.verified(ctx, s.Interface.GetList(ctx, key, opts, list))
}

// GuaranteedUpdate implements storage.Interface.
func (s *checked) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	return s.verified(ctx, s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cached))
}

// GetCurrentResourceVersion implements storage.Interface. Lists from the watch cache are at least this new.
func (s *checked) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	revision, err := s.Interface.GetCurrentResourceVersion(ctx)
	return revision, s.verified(ctx, err)
}

// Watch implements storage.Interface. It waits while the server does not serve, as GetList does.
func (s *checked) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if err := s.guard.await(ctx); err != nil {
		return nil, err
	}
	next, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return newHeld(next, s.guard), nil
}

// AwaitCache lets the server start while the store is refused. The library waits for full watch caches, and reports
// itself as not alive until then. The check of the guard waits for them instead.
func (g *Guard) AwaitCache(next storage.Interface, _ *storagebackend.ConfigForResource) (storage.Interface, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stores = append(g.stores, next.ReadinessCheck)
	return ready{next, g}, nil
}

type ready struct {
	storage.Interface
	guard *Guard
}

// ReadinessCheck implements storage.Interface.
func (r ready) ReadinessCheck() error {
	if !r.guard.Serving() {
		return nil
	}
	return r.Interface.ReadinessCheck()
}
