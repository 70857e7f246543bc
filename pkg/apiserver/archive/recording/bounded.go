// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// bounded remembers the values that were used last.
type bounded[K comparable, V any] struct{ cache *lru.Cache }

func newBounded[K comparable, V any](size int) *bounded[K, V] {
	return &bounded[K, V]{lru.New(size)}
}

func (b *bounded[K, V]) add(key K, value V) { b.cache.Add(key, value) }

func (b *bounded[K, V]) get(key K) (V, bool) {
	found, ok := b.cache.Get(key)
	value, _ := found.(V)
	return value, ok
}

// limited lets one message in a minute pass.
type limited struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	last time.Time
}

func (l *limited) passes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if !l.last.IsZero() && now.Sub(l.last) < time.Minute {
		return false
	}
	l.last = now
	return true
}
