// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// checkTimeout bounds one read of the key.
const checkTimeout = 10 * time.Second

// Verify returns nil if the store is still the right one: after a read of the key that began after this call. Otherwise it returns an
// error with code 503.
func (g *Guard) Verify(ctx context.Context) error {
	if !g.Serving() {
		return g.unavailable()
	}
	err := g.checks.do(ctx)
	switch {
	case !g.Serving():
		return g.unavailable()
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return apierrors.NewServiceUnavailable("the store did not answer whether it is still the same: " + err.Error())
	}
	return nil
}

// check reads the key.
func (g *Guard) check() error {
	ctx, cancel := g.closed.until(context.Background())
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, checkTimeout)
	defer stop()
	return redundantly(ctx, g.checkOnce)
}

func (g *Guard) checkOnce(ctx context.Context) error {
	g.mu.Lock()
	before := g.known
	g.mu.Unlock()
	start := time.Now()
	found, err := g.store.read(ctx)
	if !errors.Is(ctx.Err(), context.Canceled) { // another read was faster
		observe(err, time.Since(start))
	}
	if err != nil {
		return err
	}
	if reason := before.compare(found); reason != "" {
		g.stop(reason)
		return g.unavailable()
	}
	g.saw(found.ModRevision, found.Revision, found.Groups)
	return nil
}

// compare compares what was read with what was known when the read began.
func (k known) compare(found *witness.Found) witness.Reason {
	_, reason := witness.Decide(found, &witness.Record{UUID: k.uuid, Floor: k.key}, k.cluster)
	if reason == "" && found.Revision < k.revision {
		return witness.ReasonRolledBack
	}
	return reason
}

func (g *Guard) saw(key, revision int64, groups witness.Groups) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if key >= g.known.key {
		g.known.groups = groups
	}
	g.known.key, g.known.revision = max(g.known.key, key), max(g.known.revision, revision)
}

// stop ends what the server answers, for good in this process.
func (g *Guard) stop(reason witness.Reason) {
	if g.left.holds() {
		return
	}
	g.setReason(reason)
	g.left.set()
	klog.Background().Error(nil, "The store was exchanged while the server runs; nothing is served any more", "reason", reason)
}

// batches joins concurrent checks. Each caller is answered by a read that begins after it came.
type batches struct {
	read func() error

	mu      sync.Mutex
	next    *batch
	running bool
}

type batch struct {
	callers int
	done    chan struct{}
	err     error
}

func (b *batches) do(ctx context.Context) error {
	b.mu.Lock()
	if b.next == nil {
		b.next = &batch{done: make(chan struct{})}
	}
	mine := b.next
	mine.callers++
	if !b.running {
		b.running = true
		go b.run()
	}
	b.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run reads until no caller waits.
func (b *batches) run() {
	for {
		b.mu.Lock()
		current := b.next
		b.next = nil
		b.running = current != nil
		b.mu.Unlock()
		if current == nil {
			return
		}
		current.err = b.read()
		close(current.done)
	}
}

const (
	// moreReadsAfter is how long a read may take before another one begins beside it, and maxReads how many there are at most.
	moreReadsAfter = 200 * time.Millisecond
	maxReads       = 4
)

// redundantly returns nil as soon as one read has succeeded, and the last error when all have failed. A member of etcd
// that hangs would otherwise hold up every request of the server: the client sends the reads to the members in turn.
func redundantly(ctx context.Context, read func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, maxReads)
	running, begun := 0, 0
	begin := func() {
		running, begun = running+1, begun+1
		go func() { results <- read(ctx) }()
	}
	more := time.NewTicker(moreReadsAfter)
	defer more.Stop()
	var last error
	for begin(); running > 0; {
		select {
		case err := <-results:
			running--
			if err == nil {
				return nil
			}
			last = err
		case <-more.C:
			if begun < maxReads {
				begin()
			}
		}
	}
	return last
}
