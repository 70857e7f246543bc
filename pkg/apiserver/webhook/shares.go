// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/callers"
)

const (
	// maxAddresses bounds the memory for addresses.
	maxAddresses = 4096
	// maxOpen and maxOpenOfAddress bound the questions of callers without a certificate that are being received or wait.
	// When there are more, the one that has been received for the longest time gives way.
	maxOpen, maxOpenOfAddress = 2000, 500

	// smallBody is the size up to which a question neither waits for room nor for its pace: most pods have less.
	smallBody = 32 << 10
	// room bounds the bytes of larger questions of callers without a certificate, roomOfAddress those of one address.
	room, roomOfAddress = 64 << 20, 24 << 20
	// pace is how many bytes of larger questions are answered in a second, paceOfAddress of one address; burst and
	// burstOfAddress are how many at once.
	pace, paceOfAddress   = 8 << 20, 2 << 20
	burst, burstOfAddress = 32 << 20, 8 << 20
	// busyDelay is when a caller learns that its pace is used up. It bounds how often a caller that does not wait by
	// itself sends a large question again, which costs as much as an answer.
	busyDelay = time.Second
	// maxDelays bounds the callers that wait for that. They use no places of questions.
	maxDelays = 200
	// questionBytes is what a question costs beyond its bytes, in bytes.
	questionBytes = 4 << 10

	// light is what an address may use lately, in bytes, without waiting for the pace of all. So addresses that use up that pace do not
	// keep another one from its share.
	light = 4 << 20
)

// shares divide what callers without a certificate may use among their addresses, so that none of them can use up what others need. The
// shares are equal: good questions prove nothing about who asks them, so an attacker could buy a larger one with them. Only a certificate
// proves it.
type shares struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	addresses *lru.Cache
	open      int
	receiving *list.List // of *request, the oldest first
	room      *callers.Line[*share]
	pace      *rate.Limiter
}

// share is the share of one address.
type share struct {
	open      int
	receiving *list.List
	room      *semaphore.Weighted
	pace      *rate.Limiter
	used      usage
	// held is the room that its questions have.
	held int64
}

// request is one question.
type request struct {
	shares *shares
	share  *share
	// giveWay ends the question while it is being received.
	giveWay    func()
	all, owned *list.Element
	ended      bool
	// charged is the room that the question has.
	charged int64
}

func newShares(c clock.PassiveClock) *shares {
	return &shares{clock: c, addresses: lru.New(maxAddresses), receiving: list.New(), room: newRooms(room),
		pace: rate.NewLimiter(pace, burst)}
}

// enter begins a question. It is nil if there are too many and none of them gives way.
func (s *shares) enter(address string, giveWay func()) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.of(address)
	if a.open >= maxOpenOfAddress && !shed(a.receiving) || s.open >= maxOpen && !shed(s.receiving) {
		return nil
	}
	r := &request{shares: s, share: a, giveWay: giveWay}
	s.open++
	a.open++
	r.all, r.owned = s.receiving.PushBack(r), a.receiving.PushBack(r)
	return r
}

func (s *shares) of(address string) *share {
	if found, ok := s.addresses.Get(address); ok {
		return found.(*share)
	}
	a := &share{receiving: list.New(), room: semaphore.NewWeighted(roomOfAddress), pace: rate.NewLimiter(paceOfAddress, burstOfAddress)}
	s.addresses.Add(address, a)
	return a
}

// shed ends the oldest question of a list.
func shed(receiving *list.List) bool {
	oldest := receiving.Front()
	if oldest == nil {
		return false
	}
	r := oldest.Value.(*request)
	r.giveWay()
	r.end()
	return true
}

// received takes the question out of those that may have to give way.
func (r *request) received() {
	if r.all != nil {
		r.shares.receiving.Remove(r.all)
		r.share.receiving.Remove(r.owned)
		r.all, r.owned = nil, nil
	}
}

// end gives the place of the question to another, once.
func (r *request) end() {
	r.received()
	if !r.ended {
		r.ended = true
		r.shares.open--
		r.share.open--
	}
}

// arrive says that the question was received as a whole. It is false if the question had to give way.
func (r *request) arrive() bool {
	r.shares.mu.Lock()
	defer r.shares.mu.Unlock()
	r.received()
	return !r.ended
}

// makeRoom waits for the room that a large question needs.
func (r *request) makeRoom(ctx context.Context, size int64) error {
	if err := r.share.room.Acquire(ctx, size); err != nil {
		return err
	}
	if !r.shares.room.Enter(r.share, size).Wait(ctx) {
		r.share.room.Release(size)
		return ctx.Err()
	}
	r.charged = size
	return nil
}

// leave ends the question, whatever became of it.
func (r *request) leave() {
	r.shares.mu.Lock()
	r.end()
	r.shares.mu.Unlock()
	r.free()
}

// free gives the room of the question back.
func (r *request) free() {
	if r.charged > 0 {
		r.share.room.Release(r.charged)
		r.shares.room.Release(r.share, r.charged)
		r.charged = 0
	}
}

// reserve returns how long a question that was received must wait for its pace, and what it costs: the question with the
// least cost is answered first. A question that would have to wait for longer than the limit is not due at all. It uses
// nothing of the pace, so that what was refused never delays what comes later.
func (r *request) reserve(size int, limit time.Duration) (wait time.Duration, cost float64, due bool) {
	s, a := r.shares, r.share
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	cost = a.used.now(now) + float64(size)
	if size <= smallBody {
		return 0, cost, true
	}
	limiters := []*rate.Limiter{a.pace}
	if cost > light {
		limiters = append(limiters, s.pace)
	}
	reserved := make([]*rate.Reservation, len(limiters))
	for i, l := range limiters {
		reserved[i] = l.ReserveN(now, size)
		wait = max(wait, reserved[i].DelayFrom(now))
	}
	if wait <= limit {
		return wait, cost, true
	}
	for _, reservation := range reserved {
		reservation.CancelAt(now)
	}
	return 0, 0, false
}

// charge counts a question that is being answered as used. What waits does not count, so that a small question comes
// before larger ones of the same address.
func (r *request) charge(size int) {
	r.shares.mu.Lock()
	defer r.shares.mu.Unlock()
	r.share.used.now(r.shares.clock.Now())
	r.share.used.bytes += float64(size) + questionBytes
}
