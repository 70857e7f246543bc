// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"sync"
)

// latch is a fact about the server that begins to hold once, and holds until the process ends.
type latch struct {
	// done is closed when the fact holds.
	done chan struct{}

	mu sync.Mutex
	// ends are called when the fact begins to hold.
	ends map[*context.CancelFunc]struct{}
}

func newLatch() *latch {
	return &latch{done: make(chan struct{}), ends: map[*context.CancelFunc]struct{}{}}
}

// holds returns whether the fact holds.
func (l *latch) holds() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// set makes the fact hold.
func (l *latch) set() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds() {
		return
	}
	close(l.done)
	for end := range l.ends {
		(*end)()
	}
	clear(l.ends)
}

// until returns a context that ends with its parent, and when the fact holds. It costs no goroutine: each watch of a client has one.
func (l *latch) until(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(parent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds() {
		end()
		return ctx, end
	}
	l.ends[&end] = struct{}{}
	return ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.ends, &end)
		end()
	}
}
