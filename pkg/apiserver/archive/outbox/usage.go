// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// countPage is how many entries are read at once to count their bytes.
	countPage = 50
	// countAgain is how long a count holds that says that the outbox is full. Another server may have drained it since.
	countAgain = 30 * time.Second
)

// Usage is how much the outbox has, as far as this server knows.
type Usage struct{ Entries, Bytes int64 }

// Usage returns how much the outbox had at the last count, and what this server has changed since.
func (o *Outbox) Usage() Usage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.usage
}

// reserve makes room for an entry, or returns ErrFull.
func (o *Outbox) reserve(ctx context.Context, size int64) error {
	if o.take(size) {
		return nil
	}
	if err := o.recountOld(ctx); err != nil {
		return err
	}
	if !o.take(size) {
		return ErrFull
	}
	return nil
}

func (o *Outbox) take(size int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.usage.Entries+1 > o.MaxEntries || o.usage.Bytes+size > o.MaxBytes {
		return false
	}
	o.set(Usage{o.usage.Entries + 1, o.usage.Bytes + size})
	return true
}

// release gives room back. A count that came in between may know of that already.
func (o *Outbox) release(entries, bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.set(Usage{max(0, o.usage.Entries-entries), max(0, o.usage.Bytes-bytes)})
}

// set is called with mu held.
func (o *Outbox) set(usage Usage) {
	o.usage = usage
	entriesGauge.Set(float64(usage.Entries))
	bytesGauge.Set(float64(usage.Bytes))
}

// recountOld counts the entries unless that was tried a short time ago. Only one request counts, and the others wait for it.
func (o *Outbox) recountOld(ctx context.Context) error {
	if err := o.recounting.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting for a count of the outbox: %w", err)
	}
	defer o.recounting.Release(1)
	o.mu.Lock()
	old := o.Clock.Since(o.counted) >= countAgain
	o.mu.Unlock()
	if !old {
		return nil
	}
	return o.count(ctx)
}

// Recount counts what the outbox has. Other servers change it, too.
func (o *Outbox) Recount(ctx context.Context) error {
	if err := o.recounting.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting for a count of the outbox: %w", err)
	}
	defer o.recounting.Release(1)
	return o.count(ctx)
}

// count is called with recounting held. A count that fails is not tried again by each request that waits.
func (o *Outbox) count(ctx context.Context) error {
	o.mu.Lock()
	o.counted = o.Clock.Now()
	o.mu.Unlock()
	var usage Usage
	err := o.pages(ctx, countPage, func(page *clientv3.GetResponse) {
		for _, kv := range page.Kvs {
			usage.Entries++
			usage.Bytes += sizeOf(string(kv.Key), kv.Value)
		}
	})
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.set(usage)
	return nil
}
