// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"container/list"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// defaultMemory is the memory that the manifests give to the server, which counts if GOMEMLIMIT is not set.
	defaultMemory = 2 << 30
	// totalShare is which part of the memory may wait to be read, and userShare which part of that belongs to one user.
	totalShare, userShare = 16, 4
	// grace is how long a write may take without being in the way of others: that of a client which reads, also when a change goes to many watches at once.
	grace = time.Second
	// maxWait is how long one write may wait. A client that takes longer for one event is as good as gone.
	maxWait = time.Minute
	// sweepEvery is how often it is looked for writes that wait too long.
	sweepEvery = 10 * time.Second
)

// budget counts the bytes that wait to be read.
type budget struct {
	clock clock.PassiveClock
	// perUser and total are the bounds in bytes.
	perUser, total int

	mu    sync.Mutex
	bytes int
	users map[string]*waiting
}

// waiting are the writes of one user that have not returned.
type waiting struct {
	bytes int
	// writes are *write, the oldest first.
	writes list.List
}

// write is one write that has not returned.
type write struct {
	user    string
	bytes   int
	begin   time.Time
	element *list.Element
	// end makes the write return, and ends the watch.
	end func()
}

// newBudget returns a budget that follows from the limit of memory.
func newBudget(c clock.PassiveClock) *budget {
	memory := debug.SetMemoryLimit(-1)
	if memory == math.MaxInt64 {
		memory = defaultMemory
	}
	total := int(memory / totalShare)
	return &budget{clock: c, perUser: total / userShare, total: total, users: map[string]*waiting{}}
}

// begin counts a write, and ends others if there is no room for it: those of the same user first, then those of the user who has most.
func (b *budget) begin(user string, bytes int, end func()) *write {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.users[user]
	if u == nil {
		u = &waiting{}
		b.users[user] = u
	}
	w := &write{user: user, bytes: bytes, begin: b.clock.Now(), end: end}
	w.element = u.writes.PushBack(w)
	u.bytes += bytes
	b.bytes += bytes
	waitingBytes.Set(float64(b.bytes))
	for u.bytes > b.perUser && u.writes.Len() > 1 && b.waits(u) {
		b.shed(u, reasonUser)
	}
	var spared *waiting
	if u.writes.Len() == 1 {
		spared = u // this write would never come to its end otherwise
	}
	for b.bytes > b.total {
		largest := b.largest(spared)
		if largest == nil {
			break
		}
		b.shed(largest, reasonTotal)
	}
	return w
}

// finish takes a write out that has returned.
func (b *budget) finish(w *write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(w)
}

// sweep ends the watches whose writes wait too long, until the server has stopped.
func (b *budget) sweep(stopped <-chan struct{}) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.endOld()
		case <-stopped:
			return
		}
	}
}

func (b *budget) endOld() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.users {
		for oldest := u.writes.Front(); oldest != nil && b.clock.Since(oldest.Value.(*write).begin) >= maxWait; oldest = u.writes.Front() {
			b.shed(u, reasonTime)
		}
	}
}

// shed ends the watch of a user whose write has waited longest. The writer cannot return meanwhile, because finish needs the lock.
func (b *budget) shed(u *waiting, reason string) {
	w := u.oldest()
	b.remove(w)
	ended.WithLabelValues(reason).Inc()
	w.end()
}

func (b *budget) remove(w *write) {
	if w.element == nil {
		return
	}
	u := b.users[w.user]
	u.writes.Remove(w.element)
	w.element = nil
	u.bytes -= w.bytes
	b.bytes -= w.bytes
	if u.writes.Len() == 0 {
		delete(b.users, w.user)
	}
	waitingBytes.Set(float64(b.bytes))
}

// waits returns whether a write of a user takes longer than the grace.
func (b *budget) waits(u *waiting) bool {
	return b.clock.Since(u.oldest().begin) >= grace
}

// largest returns the user with most bytes of those that have a write to end, and spares one. Of equals it is the one who has waited longest.
func (b *budget) largest(spared *waiting) (found *waiting) {
	for _, u := range b.users {
		if u != spared && b.waits(u) && (found == nil || u.exceeds(found)) {
			found = u
		}
	}
	return found
}

func (u *waiting) exceeds(other *waiting) bool {
	if u.bytes != other.bytes {
		return u.bytes > other.bytes
	}
	return u.oldest().begin.Before(other.oldest().begin)
}

func (u *waiting) oldest() *write { return u.writes.Front().Value.(*write) }
