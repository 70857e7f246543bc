// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"slices"
	"time"
)

// turns are the turns of an address, and the requests that wait for one.
//
// A new valid token looks like an invented one, so they cannot be told apart before the main API is asked. What an address that sends
// invented ones cannot invent at will is connections. So the connection whose last turn is the longest time ago has the next one; one that
// had none counts from its first request. A client that asks again on its connection has its turn after at most one turn of each connection
// that the address had when it began, whatever they send.
type turns struct {
	// left is how many turns there are at a time. It is below 0 if tokens that passed without a turn were invalid.
	left float64
	at   time.Time
	// waiting are the requests that wait, in the order in which they came.
	waiting []*turn
	// timed says that a timer waits for the next turn.
	timed bool
}

// connection is one on which a token was sent that was not known to be valid.
type connection struct {
	// number is when it had its last turn, or began to ask.
	number int64
	// waiting is how many of its requests wait.
	waiting int
}

// turn is what a request waits for.
type turn struct {
	connection *connection
	// come is true when it may go on, and false when it must give way.
	come chan bool
}

// almost is what rounding may lack of a turn.
const almost = 1 - 1e-6

// await returns whether the request may go on. If it may not, too many requests wait, or the client has gone.
func (b *BadTokens) await(ctx context.Context, a *ask) bool {
	t := b.enter(a)
	select {
	case goOn := <-t.come:
		return goOn
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.current(a.address)
	if at := slices.Index(own.waiting, t); at >= 0 {
		own.remove(at)
		return false
	}
	select {
	case had := <-t.come: // at the same moment
		if had {
			b.giveBack(own)
		}
	default: // the address was forgotten, and its timer has the turn
	}
	return false
}

// enter waits for a turn, which may have come at once.
func (b *BadTokens) enter(a *ask) *turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, own := &turn{connection: b.connection(a.remote), come: make(chan bool, 1)}, b.current(a.address)
	if len(own.waiting) >= maxBadTokensWaiting && !own.giveWay(t.connection) {
		t.come <- false
		return t
	}
	own.waiting = append(own.waiting, t)
	t.connection.waiting++
	b.dispatch(own)
	return t
}

// giveWay makes room for a request of a connection, if another request would have its turn later: the last one of the connection with the
// most requests, and of these the connection whose turn is the last.
func (t *turns) giveWay(to *connection) bool {
	last := -1
	for i, w := range t.waiting {
		if last < 0 || w.connection == t.waiting[last].connection || w.connection.after(t.waiting[last].connection, 0) {
			last = i
		}
	}
	if !t.waiting[last].connection.after(to, 1) {
		return false
	}
	t.waiting[last].come <- false
	t.remove(last)
	return true
}

// after returns whether the last request of a connection has its turn after that of another one, to which so many requests are added.
func (c *connection) after(other *connection, added int) bool {
	if c.waiting != other.waiting+added {
		return c.waiting > other.waiting+added
	}
	return c.number > other.number
}

func (t *turns) remove(at int) {
	t.waiting[at].connection.waiting--
	t.waiting = slices.Delete(t.waiting, at, at+1)
}

// dispatch gives the turns that are left to requests that wait, and comes again when there is another one.
func (b *BadTokens) dispatch(t *turns) {
	for len(t.waiting) > 0 && t.left >= almost {
		next := 0
		for i, w := range t.waiting {
			if w.connection.number < t.waiting[next].connection.number {
				next = i
			}
		}
		w := t.waiting[next]
		t.remove(next)
		t.left--
		b.number++
		w.connection.number = b.number
		w.come <- true
	}
	if len(t.waiting) == 0 || t.timed {
		return
	}
	t.timed = true
	b.clock.AfterFunc(time.Duration((1-t.left)/badTokensPerSecond*float64(time.Second)), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.timed = false
		t.refill(b.clock.Now())
		b.dispatch(t)
	})
}

// giveBack gives the turn of a valid token to another request.
func (b *BadTokens) giveBack(t *turns) {
	t.left = min(t.left+1, maxBadTokens)
	b.dispatch(t)
}

// refill adds the turns that have come since the last time.
func (t *turns) refill(now time.Time) {
	t.left, t.at = min(t.left+now.Sub(t.at).Seconds()*badTokensPerSecond, maxBadTokens), now
}

// current are the turns of an address now.
func (b *BadTokens) current(address string) *turns {
	now := b.clock.Now()
	if found, ok := b.addresses.Get(address); ok {
		t := found.(*turns)
		t.refill(now)
		return t
	}
	t := &turns{left: maxBadTokens, at: now}
	b.addresses.Add(address, t)
	return t
}

// connection is the connection of a remote address and port.
func (b *BadTokens) connection(remote string) *connection {
	if found, ok := b.connections.Get(remote); ok {
		return found.(*connection)
	}
	b.number++
	c := &connection{number: b.number}
	b.connections.Add(remote, c)
	return c
}
