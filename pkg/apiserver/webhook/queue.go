// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"container/heap"
	"context"
	"math"
	"sync"
	"time"
)

// queue gives turns to questions that were received, those with the least cost first, and the older one of those with the same.
type queue struct {
	mu      sync.Mutex
	free    int
	waiting bids
	number  int64
}

// bid is a question that waits for its turn.
type bid struct {
	cost   float64
	number int64
	// turn is closed when the question may be answered; index is -1 from then on.
	turn  chan struct{}
	index int
}

func newQueue(turns int) *queue { return &queue{free: turns} }

// acquire waits for a turn.
func (q *queue) acquire(ctx context.Context, cost float64) error {
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.mu.Unlock()
		return nil
	}
	q.number++
	b := &bid{cost: cost, number: q.number, turn: make(chan struct{})}
	heap.Push(&q.waiting, b)
	q.mu.Unlock()
	select {
	case <-b.turn:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if b.index < 0 {
		return nil // it came at the same moment
	}
	heap.Remove(&q.waiting, b.index)
	return ctx.Err()
}

// release gives a turn back.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.free++
		return
	}
	close(heap.Pop(&q.waiting).(*bid).turn)
}

type bids []*bid

func (b bids) Len() int { return len(b) }

func (b bids) Less(i, j int) bool {
	if b[i].cost != b[j].cost {
		return b[i].cost < b[j].cost
	}
	return b[i].number < b[j].number
}

func (b bids) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].index, b[j].index = i, j
}

// Push implements heap.Interface.
func (b *bids) Push(x any) {
	added := x.(*bid)
	added.index = len(*b)
	*b = append(*b, added)
}

// Pop implements heap.Interface.
func (b *bids) Pop() any {
	last := (*b)[len(*b)-1]
	last.index = -1
	*b = (*b)[:len(*b)-1]
	return last
}

// bucket paces what comes: so many bytes at once, and then so many in a second.
type bucket struct {
	left float64
	at   time.Time
}

func newBucket(now time.Time, burst float64) bucket { return bucket{left: burst, at: now} }

// due returns how long to wait until bytes are due. It takes nothing.
func (b *bucket) due(now time.Time, size, pace, burst float64) time.Duration {
	b.left, b.at = min(b.left+now.Sub(b.at).Seconds()*pace, burst), now
	return time.Duration(max(size-b.left, 0) / pace * float64(time.Second))
}

// usage is what an address has used lately: half of it is forgotten in ten seconds.
type usage struct {
	bytes float64
	at    time.Time
}

const halfLife = 10 * time.Second

func (u *usage) now(now time.Time) float64 {
	if u.bytes > 0 {
		u.bytes *= math.Exp2(-float64(now.Sub(u.at)) / float64(halfLife))
	}
	u.at = now
	return u.bytes
}
