// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Pace tells how many requests may be under way at a time for one owner. It begins with one, and every success allows one
// more, up to the limit, so that the number doubles with each round trip. A failure puts it back to one: a main API that
// refuses all of a thousand requests gets to see few of them. What has been learned stays for the next time.
type Pace struct {
	limit int

	mu      sync.Mutex
	allowed map[cache.ObjectName]int
}

// NewPace returns the pace of owners whose requests are limited to so many at a time.
func NewPace(limit int) *Pace { return &Pace{limit: limit, allowed: map[cache.ObjectName]int{}} }

// Do calls do for 0 to n-1, in this order, at the pace of the owner. After a failure, or once the context has ended, nothing
// new is begun. It returns when all that was begun has ended, with the errors in order.
func (p *Pace) Do(ctx context.Context, owner cache.ObjectName, n int, do func(ctx context.Context, i int) error) error {
	type result struct {
		i   int
		err error
	}
	var (
		errs    = make([]error, n)
		results = make(chan result)
		allowed = p.of(owner)
		failed  bool
	)
	for next, running := 0, 0; ; {
		for ; next < n && running < allowed && !failed && ctx.Err() == nil; next, running = next+1, running+1 {
			go func(i int) { results <- result{i, do(ctx, i)} }(next)
		}
		if running == 0 {
			p.keep(owner, allowed)
			if err := errors.Join(errs...); err != nil || next == n {
				return err
			}
			return ctx.Err()
		}
		r := <-results
		running--
		switch errs[r.i] = r.err; {
		case r.err != nil:
			allowed, failed = 1, true
		case !failed:
			allowed = min(allowed+1, p.limit)
		}
	}
}

// Forget drops what has been learned about an owner.
func (p *Pace) Forget(owner cache.ObjectName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.allowed, owner)
}

func (p *Pace) of(owner cache.ObjectName) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(1, p.allowed[owner])
}

func (p *Pace) keep(owner cache.ObjectName, allowed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if allowed == 1 {
		delete(p.allowed, owner)
		return
	}
	p.allowed[owner] = allowed
}
