// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

const (
	// requestGrace is how long requests that are under way may go on when nothing new is begun.
	requestGrace = 5 * time.Second
	// minCalls is the number of calls that are made even if the sync has had its turn, so that each sync comes further.
	minCalls = 10
	// maxErrors is the number of errors that are returned of many.
	maxErrors = 3
)

// ErrSkipped is the result of a call that asked for nothing. It is neither a success nor a failure.
var ErrSkipped = errors.New("skipped")

// firstRequests is the number of parallel requests with which a Host starts. The children of most owners are so few that all of them come
// in one round trip. Then their pods become ready together, and the cluster writes the endpoints of their Service less often.
const firstRequests = 4

// SlowStart limits the number of parallel requests for each owner. It starts with the first ones, and every success allows one more, up
// to the limit, so that the number doubles with each round trip. A failure resets it to one: a main API that refuses all of
// a thousand requests gets one at a time. The number is kept between calls.
//
// Owners that make requests at the same time share twice the limit: requests wait in the rate limit of the client, and in the API
// server, for those that came before, so that an owner with few of them would wait for as many as all others have under way.
type SlowStart struct {
	first, limit int
	allowed      *Notes[int]

	mu sync.Mutex
	// busy is the number of owners that make requests.
	busy int
}

// sharedLimits is how many times its limit of requests a SlowStart has under way at a time for all owners together.
const sharedLimits = 2

// NewSlowStart returns a slow start with a limit of requests at a time for each owner. It starts with one.
func NewSlowStart(limit int) *SlowStart { return newSlowStart(1, limit) }

func newSlowStart(first, limit int) *SlowStart {
	return &SlowStart{first: min(first, limit), limit: limit, allowed: NewNotes[int]()}
}

// Do calls do for 0 to n-1, in this order, with as many calls in parallel as the owner may have. A failed call does not
// prevent the others. Once the pass has Ended, no new call starts; the context of the running calls ends a little later. Do
// returns when all started calls have ended, with the first errors. If others wait in the queue and the sync has had its turn, or is found
// to take long, no other call starts, and the context of the sync ends.
func (s *SlowStart) Do(ctx context.Context, owner cache.ObjectName, n int, do func(ctx context.Context, i int) error) error {
	type result struct {
		i   int
		err error
	}
	var (
		errs    = make([]error, n)
		results = make(chan result)
		allowed = cmp.Or(s.allowed.Noted(owner), s.first)
	)
	if n > s.limit && queue.Postpone(ctx) {
		return nil
	}
	calls, end := Finishing(ctx)
	defer end()
	s.count(1)
	defer s.count(-1)
	for next, running := 0, 0; ; {
		for ; next < n && running < min(allowed, s.share()) && s.goesOn(ctx, next); next, running = next+1, running+1 {
			go func(i int) { results <- result{i, queue.Guarded(func() error { return do(calls, i) })} }(next)
		}
		if running == 0 {
			s.keep(owner, allowed)
			endTurn(ctx, n-next)
			return FirstErrors(errs...)
		}
		r := <-results
		running--
		switch {
		case r.err == nil:
			allowed = min(allowed+1, s.limit)
		case NotAsked(r.err):
			errs[r.i] = r.err
		case !errors.Is(r.err, ErrSkipped):
			errs[r.i], allowed = r.err, 1
		}
	}
}

// endTurn ends the turn of a sync that has so many calls left, unless its pass was superseded.
func endTurn(ctx context.Context, left int) {
	if left > 0 && !Superseded(ctx) {
		queue.EndTurn(ctx)
	}
}

// goesOn returns whether another call may start after so many.
func (s *SlowStart) goesOn(ctx context.Context, calls int) bool {
	return !Ended(ctx) && (calls < minCalls || !queue.TurnOver(ctx))
}

// count adds to the number of owners that make requests.
func (s *SlowStart) count(owners int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy += owners
}

// share returns how many requests each of these owners may have under way.
func (s *SlowStart) share() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(1, sharedLimits*s.limit/max(1, s.busy))
}

// Forget resets an owner.
func (s *SlowStart) Forget(owner cache.ObjectName) { s.allowed.Forget(owner) }

func (s *SlowStart) keep(owner cache.ObjectName, allowed int) {
	if allowed == s.first {
		s.allowed.Forget(owner)
		return
	}
	s.allowed.Note(owner, allowed)
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
	joined := errors.Join(failures...)
	if joined == nil {
		return nil
	}
	next, only := askAgain(errs)
	return &joinedError{joined, next, only}
}
