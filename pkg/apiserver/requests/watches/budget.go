// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"container/list"
	"sync"
	"time"
	"unsafe"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

const (
	// totalShare is which part of the memory may wait to be read, and userShare which part of that belongs to one user.
	totalShare, userShare = 16, 4
	// writeGrace is the grace of writes of what is shared: enough for a client that reads, also when a change goes to many watches at once.
	writeGrace = time.Second
	// copyGrace is the grace of writes of copies, such as over WebSocket: there is none, because many at once are too much for the memory
	// already.
	copyGrace = 0
	// maxWait is how long one write may wait. A client that takes longer for one event is as good as gone.
	maxWait = time.Minute
	// sweepEvery is how often it is looked for writes that wait too long.
	sweepEvery = 10 * time.Second
)

// budget counts the bytes that wait to be read.
type budget struct {
	clock clock.PassiveClock
	// grace is how long a write may take without being in the way of others.
	grace time.Duration
	// perUser and total are the bounds in bytes.
	perUser, total int

	mu    sync.Mutex
	all   buffers
	users map[string]*waiting
}

// waiting are the writes of one user that have not returned.
type waiting struct {
	buffers
	// writes are *write, the oldest first.
	writes list.List
}

// buffers counts bytes. Watches of the same object write the same buffer, which counts once, however many they are.
type buffers struct {
	bytes int
	// counts is how many writes there are of a buffer.
	counts map[buffer]int
}

// buffer is what a write takes its bytes from.
type buffer struct {
	begin *byte
	bytes int
}

func (b *buffers) add(of buffer) {
	if b.counts == nil {
		b.counts = map[buffer]int{}
	}
	if b.counts[of]++; b.counts[of] == 1 {
		b.bytes += of.bytes
	}
}

func (b *buffers) remove(of buffer) {
	if b.counts[of]--; b.counts[of] == 0 {
		b.bytes -= of.bytes
		delete(b.counts, of)
	}
}

// write is one write that has not returned.
type write struct {
	user    string
	data    buffer
	begin   time.Time
	element *list.Element
	// end makes the write return, and ends the watch.
	end func()
}

// newBudget returns a budget that follows from the memory of the server, in bytes.
func newBudget(c clock.PassiveClock, grace time.Duration, memory int64) *budget {
	total := int(memory / totalShare)
	return &budget{clock: c, grace: grace, perUser: total / userShare, total: total, users: map[string]*waiting{}}
}

// begin counts a write. If there is no room for it, it ends other writes: first writes of the same user, then writes of the user who has
// most.
func (b *budget) begin(user string, data []byte, end func()) *write {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.users[user]
	if u == nil {
		u = &waiting{}
		b.users[user] = u
	}
	w := &write{user: user, data: buffer{unsafe.SliceData(data), len(data)}, begin: b.clock.Now(), end: end}
	w.element = u.writes.PushBack(w)
	before := b.all.bytes
	u.add(w.data)
	b.all.add(w.data)
	waitingBytes.Add(float64(b.all.bytes - before))
	for u.bytes > b.perUser && u.writes.Len() > 1 && b.waits(u) {
		b.shed(u, reasonUser)
	}
	var spared *waiting
	if u.writes.Len() == 1 {
		spared = u // this write would never come to its end otherwise
	}
	for b.all.bytes > b.total {
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
	before := b.all.bytes
	u.remove(w.data)
	b.all.remove(w.data)
	if u.writes.Len() == 0 {
		delete(b.users, w.user)
	}
	waitingBytes.Add(float64(b.all.bytes - before))
}

// waits returns whether a write of a user takes longer than the grace.
func (b *budget) waits(u *waiting) bool {
	return b.clock.Since(u.oldest().begin) >= b.grace
}

// largest returns the user with most bytes of those that have a write to end, and spares one. Of equals it is the one
// who has waited longest.
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

// Why a watch was ended or refused.
const (
	reasonUser      = "user"
	reasonNamespace = "namespace"
	reasonTotal     = "total"
	reasonObjects   = "objects"
	reasonTime      = "time"
)

var (
	ended = instrument.CounterVec("jobset_apiserver_watches_ended_total",
		"Watches that were ended because their clients do not read, by reason: the bytes that wait of one user, the bytes of all users "+
			"in total, or the time of one event.", "reason")
	refused = instrument.CounterVec("jobset_apiserver_watches_refused_total",
		"Watches that were refused because there are too many, by reason: those of one user, those of the service accounts of one "+
			"namespace, those of all users in total, or those that have room beside the stored objects.", "reason")
	waitingBytes = instrument.Gauge("jobset_apiserver_watch_waiting_bytes",
		"Bytes of events that are being sent to watches and were not taken by their clients yet.")
	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(ended, refused, waitingBytes)
		for _, reason := range []string{reasonUser, reasonTotal, reasonTime} {
			ended.WithLabelValues(reason)
		}
		for _, reason := range []string{reasonUser, reasonNamespace, reasonTotal, reasonObjects} {
			refused.WithLabelValues(reason)
		}
	})
}
