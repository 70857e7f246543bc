// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/queue"
)

const (
	// requestGrace is how long requests that are under way may go on when nothing new is begun.
	requestGrace = 5 * time.Second
	// maxErrors is the number of errors that are returned of many.
	maxErrors = 3
)

// ErrSkipped is the result of a call that asked for nothing. It is neither a success nor a failure.
var ErrSkipped = errors.New("skipped")

// SlowStart limits the number of parallel requests for each owner. It starts at one, and every success allows one more, up
// to the limit, so that the number doubles with each round trip. A failure resets it to one: a main API that refuses all of
// a thousand requests gets one at a time. The number is kept between calls.
type SlowStart struct {
	limit int

	mu      sync.Mutex
	allowed map[cache.ObjectName]int
}

// NewSlowStart returns a slow start with a limit of requests at a time for each owner.
func NewSlowStart(limit int) *SlowStart {
	return &SlowStart{limit: limit, allowed: map[cache.ObjectName]int{}}
}

// Do calls do for 0 to n-1, in this order, with as many calls in parallel as the owner may have. A failed call does not
// prevent the others. When the context ends, no new call starts; the context of the running calls ends a little later. Do
// returns when all started calls have ended, with the first errors.
func (s *SlowStart) Do(ctx context.Context, owner cache.ObjectName, n int, do func(ctx context.Context, i int) error) error {
	type result struct {
		i   int
		err error
	}
	var (
		errs    = make([]error, n)
		results = make(chan result)
		allowed = s.of(owner)
	)
	calls, end := Finishing(ctx)
	defer end()
	for next, running := 0, 0; ; {
		for ; next < n && running < allowed && ctx.Err() == nil; next, running = next+1, running+1 {
			go func(i int) { results <- result{i, queue.Guarded(func() error { return do(calls, i) })} }(next)
		}
		if running == 0 {
			s.keep(owner, allowed)
			return FirstErrors(errs...)
		}
		r := <-results
		running--
		switch {
		case r.err == nil:
			allowed = min(allowed+1, s.limit)
		case !errors.Is(r.err, ErrSkipped):
			errs[r.i], allowed = r.err, 1
		}
	}
}

// Forget resets an owner.
func (s *SlowStart) Forget(owner cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.allowed, owner)
}

func (s *SlowStart) of(owner cache.ObjectName) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(1, s.allowed[owner])
}

func (s *SlowStart) keep(owner cache.ObjectName, allowed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if allowed == 1 {
		delete(s.allowed, owner)
		return
	}
	s.allowed[owner] = allowed
}

// Finishing returns a context for requests that are not to be torn apart when ctx ends: it ends a little later.
func Finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-later.Done():
		case <-time.After(requestGrace):
			cancel()
		}
	})
	return later, func() {
		stop()
		cancel()
	}
}

// FirstErrors joins the first errors that are not nil and counts the others. Conflicts are normal: they count only if there
// is nothing else.
func FirstErrors(errs ...error) error {
	var failures, conflicts []error
	for _, err := range errs {
		switch {
		case err == nil:
		case apierrors.IsConflict(err):
			conflicts = append(conflicts, err)
		default:
			failures = append(failures, err)
		}
	}
	if len(failures) == 0 {
		failures = conflicts
	}
	if more := len(failures) - maxErrors; more > 0 {
		failures = append(failures[:maxErrors], fmt.Errorf("and %d more", more))
	}
	return errors.Join(failures...)
}
