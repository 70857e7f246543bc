// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Answer is what the API says to one question. It is asked when a caller wants to know, and not again for some time. The zero value of T
// means that the answer is not known.
type Answer[T comparable] struct {
	clock clock.PassiveClock
	ask   func(ctx context.Context) T
	// kept is how long an answer is used.
	kept func(T) time.Duration

	// mu is never held during a request.
	mu    sync.Mutex
	known T
	until time.Time
	// answered is closed when the requests under way have ended; nil if there are none.
	answered chan struct{}
}

// NewAnswer returns an Answer for which nothing was asked yet.
func NewAnswer[T comparable](clock clock.PassiveClock, ask func(ctx context.Context) T, kept func(T) time.Duration) *Answer[T] {
	return &Answer[T]{clock: clock, ask: ask, kept: kept}
}

// Of returns the answer. One caller at a time asks. Others meanwhile get the answer before, and wait only if there is none.
func (a *Answer[T]) Of(ctx context.Context) T {
	var unknown T
	a.mu.Lock()
	known, pending := a.known, a.answered
	due := pending == nil && !a.clock.Now().Before(a.until)
	if due {
		a.answered = make(chan struct{})
	}
	a.mu.Unlock()
	switch {
	case due:
		return a.renew(ctx)
	case pending == nil || known != unknown:
		return known
	}
	select {
	case <-pending:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// renew asks, and lets those go on that wait for the answer.
func (a *Answer[T]) renew(ctx context.Context) (known T) {
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.known, a.until = known, a.clock.Now().Add(a.kept(known))
		close(a.answered)
		a.answered = nil
	}()
	return a.ask(ctx)
}
