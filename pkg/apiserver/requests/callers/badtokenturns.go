// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"sync/atomic"
	"time"
)

// turns are the turns of an address, and the requests that wait for one. There are less than none if tokens that passed without a turn were
// invalid.
//
// A new valid token looks like an invented one, so they cannot be told apart before the main API is asked. What an address that sends
// invented ones cannot invent at will is connections. So the connection whose last turn is the longest time ago has the next one; one that
// had none counts from its first request. A client that asks again on its connection has its turn after at most one turn of each connection
// that the address had when it began, whatever they send.
type turns struct {
	*Line[*connection]
	// at is until when the turns that come with time were added.
	at time.Time
	// timed says that a timer waits for the next turn.
	timed bool
}

// connection is one on which a token was sent that was not known to be valid.
type connection struct {
	// number is when it had its last turn, or began to ask.
	number atomic.Int64
}

// timeOfTurn is the time after which an address has another turn.
const timeOfTurn = time.Second / badTokensPerSecond

func (b *BadTokens) newTurns() *turns {
	return &turns{at: b.clock.Now(), Line: NewLine(maxBadTokens,
		func(c, other *connection) bool { return c.number.Load() < other.number.Load() },
		func(c *connection, _ int64) { c.number.Store(b.number.Add(1)) })}
}

// await returns whether the request may go on. If it may not, too many requests wait, or the client has gone.
func (b *BadTokens) await(ctx context.Context, a *ask) bool {
	c := b.enter(a)
	return c != nil && c.Wait(ctx)
}

// enter waits for a turn, which may have come at once. It returns nil if too many requests wait.
func (b *BadTokens) enter(a *ask) *Claim[*connection] {
	b.mu.Lock()
	defer b.mu.Unlock()
	from, own := b.connection(a.remote), b.current(a.address)
	if own.Len() >= maxBadTokensWaiting && !own.GiveWay(func(waiting []*connection) int { return last(waiting, from) }) {
		return nil
	}
	c := own.Enter(from, 1)
	b.schedule(own)
	return c
}

// last returns which of the requests that wait has its turn last, if another one of a connection comes: the last one of the connection with
// the most requests, and of these the connection whose turn is the last. It returns -1 if that is the one that comes.
func last(waiting []*connection, comes *connection) int {
	requests := map[*connection]int{comes: 1}
	for _, c := range waiting {
		requests[c]++
	}
	after := func(c, other *connection) bool {
		if requests[c] != requests[other] {
			return requests[c] > requests[other]
		}
		return c.number.Load() > other.number.Load()
	}
	at, of := -1, comes
	for i, c := range waiting {
		if c == of && at >= 0 || after(c, of) {
			at, of = i, c
		}
	}
	return at
}

// schedule comes again when there is another turn, if a request waits for it.
func (b *BadTokens) schedule(t *turns) {
	if t.timed || t.Len() == 0 {
		return
	}
	t.timed = true
	b.clock.AfterFunc(t.at.Add(timeOfTurn).Sub(b.clock.Now()), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.timed = false
		t.refill(b.clock.Now())
		b.schedule(t)
	})
}

// refill adds the turns that have come since the last time.
func (t *turns) refill(now time.Time) {
	came := now.Sub(t.at) / timeOfTurn
	t.at = t.at.Add(came * timeOfTurn)
	t.add(int64(came))
}

// add adds turns; a negative number takes some away.
func (t *turns) add(n int64) { t.Add(n, -maxBadTokensWaiting, maxBadTokens) }

// current are the turns of an address now.
func (b *BadTokens) current(address string) *turns {
	found, ok := b.addresses.Get(address)
	if !ok {
		found = b.newTurns()
		b.addresses.Add(address, found)
	}
	t := found.(*turns)
	t.refill(b.clock.Now())
	return t
}

// connection is the connection of a remote address and port.
func (b *BadTokens) connection(remote string) *connection {
	if found, ok := b.connections.Get(remote); ok {
		return found.(*connection)
	}
	c := &connection{}
	c.number.Store(b.number.Add(1))
	b.connections.Add(remote, c)
	return c
}
