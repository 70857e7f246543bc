// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// turnLength is how long a sync may begin requests about children while other objects wait for a worker. Long enough for what a decision
// about thousands of children costs to be small in comparison, and short enough for others to wait no longer than people notice.
const turnLength = 200 * time.Millisecond

// turn is the part of the time of a worker that one sync has.
type turn struct {
	queue *Queue
	key   cache.ObjectName
	begin time.Time
	end   context.CancelFunc
	ended atomic.Bool
	// long is whether the object is known to take long.
	long bool
}

type turnKey struct{}

// withTurn returns a context whose sync begins now.
func (q *Queue) withTurn(ctx context.Context, end context.CancelFunc, key cache.ObjectName) (context.Context, *turn) {
	t := &turn{queue: q, key: key, begin: time.Now(), end: end, long: q.order.begin(key)}
	return context.WithValue(ctx, turnKey{}, t), t
}

// TurnOver returns whether the sync that has the context has had its turn while other objects wait for a worker. A sync with many requests
// left then begins no other, and calls EndTurn. Without a queue in the context, it returns false.
func TurnOver(ctx context.Context) bool {
	t, ok := ctx.Value(turnKey{}).(*turn)
	return ok && time.Since(t.begin) >= turnLength && t.queue.Len() > 0
}

// Postpone ends the turn of a sync that is going to take long, if that was not known and objects wait which are not known to take long
// either. It returns whether it did. The next sync of the object has a turn.
func Postpone(ctx context.Context) bool {
	t, ok := ctx.Value(turnKey{}).(*turn)
	if !ok || t.long || !t.queue.order.shortWait() {
		return false
	}
	EndTurn(ctx)
	return true
}

// EndTurn ends the context of the sync, which begins nothing new then. The object is synced again after others, as one that takes long.
func EndTurn(ctx context.Context) {
	if t, ok := ctx.Value(turnKey{}).(*turn); ok {
		t.ended.Store(true)
		t.end()
	}
}

// order is the order in which objects get workers: as they were added, those that take long apart from the others. While both wait, they
// take turns, and no more than half of the workers sync objects that take long.
type order struct {
	mu          sync.Mutex
	short, long workqueue.Queue[cache.ObjectName]
	// takesLong holds the objects whose last sync ended with its turn.
	takesLong map[cache.ObjectName]bool
	// running is the number of workers that sync objects which take long, and workers that of all.
	running, workers int
	// longNext is whether it is the turn of an object that takes long.
	longNext bool
}

var _ workqueue.Queue[cache.ObjectName] = &order{}

func newOrder() *order {
	return &order{
		short: workqueue.DefaultQueue[cache.ObjectName](), long: workqueue.DefaultQueue[cache.ObjectName](),
		takesLong: map[cache.ObjectName]bool{},
	}
}

func (o *order) setWorkers(workers int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.workers = workers
}

// Touch implements workqueue.Queue: an object keeps its place.
func (o *order) Touch(cache.ObjectName) {}

// Push implements workqueue.Queue.
func (o *order) Push(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.takesLong[key] {
		o.long.Push(key)
		return
	}
	o.short.Push(key)
}

// Len implements workqueue.Queue.
func (o *order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.short.Len() + o.long.Len()
}

// Pop implements workqueue.Queue.
func (o *order) Pop() cache.ObjectName {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.long.Len() > 0 && (o.short.Len() == 0 || o.longNext && o.running < max(1, o.workers/2)) {
		o.longNext = false
		return o.long.Pop()
	}
	o.longNext = true
	return o.short.Pop()
}

// shortWait returns whether objects wait that are not known to take long.
func (o *order) shortWait() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.short.Len() > 0
}

// begin notes that a worker begins with an object, and returns whether the object is known to take long.
func (o *order) begin(key cache.ObjectName) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.takesLong[key] {
		o.running++
	}
	return o.takesLong[key]
}

// end notes that a worker has ended with an object, and whether its turn was over before all was done.
func (o *order) end(key cache.ObjectName, cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.takesLong[key] {
		o.running--
	}
	if cut {
		o.takesLong[key], o.longNext = true, false // it has just had its turn
		return
	}
	delete(o.takesLong, key)
}
