// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"slices"
	"sync"
)

// rooms is memory for large questions of all addresses. While there is too little, the question of the address that holds least of it is
// the next one, and the older one of those with the same.
type rooms struct {
	mu      sync.Mutex
	free    int64
	waiting []*claim
}

// claim is a question that waits for room.
type claim struct {
	share *share
	size  int64
	// given is closed when it has its room.
	given chan struct{}
}

func newRooms(free int64) *rooms { return &rooms{free: free} }

// acquire waits for room.
func (r *rooms) acquire(ctx context.Context, s *share, size int64) error {
	w := &claim{share: s, size: size, given: make(chan struct{})}
	r.mu.Lock()
	r.waiting = append(r.waiting, w)
	r.give()
	r.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.waiting, w)
	if at < 0 {
		return nil // it came at the same moment
	}
	r.waiting = slices.Delete(r.waiting, at, at+1)
	r.give()
	return ctx.Err()
}

// release gives room back.
func (r *rooms) release(s *share, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += size
	s.held -= size
	r.give()
}

// give gives room to the next questions, as long as there is enough.
func (r *rooms) give() {
	for len(r.waiting) > 0 {
		next := 0
		for i, w := range r.waiting {
			if w.share.held < r.waiting[next].share.held {
				next = i
			}
		}
		w := r.waiting[next]
		if w.size > r.free {
			return
		}
		r.free -= w.size
		w.share.held += w.size
		r.waiting = slices.Delete(r.waiting, next, next+1)
		close(w.given)
	}
}
