// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/decorate"
)

// Decorate lets the server start while the store is refused. The library waits for full watch caches, and reports
// itself as not alive until then. The check of the guard waits for them instead.
func (g *Guard) Decorate(next generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return decorate.Stores(next, func(store storage.Interface, _ runtime.Codec) storage.Interface {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stores = append(g.stores, store.ReadinessCheck)
		return ready{store, g}
	})
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
