// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxRefused is how many more changes and deletions of children than were accepted may be refused in one pass, each for
// a reason of its own, before the rest is left to the next one. That is two a minute once an object is backed off. It
// is less than for creations, because the next pass begins with others.
const maxRefused = 4

// Attempts are the requests of one kind that a pass makes for one owner, and decide whether it makes more of them. They
// end with the first refusal for a reason that the other requests share, and with too many for reasons of their own.
type Attempts struct {
	mu sync.Mutex
	// excess is by how many the refused requests exceed the accepted ones.
	excess int
	over   bool
}

// NewAttempts returns those of changes or deletions that are made in any order.
func NewAttempts() *Attempts { return &Attempts{} }

// Over returns whether no other request is made in this pass.
func (a *Attempts) Over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

// Note notes what became of a request. That an object has changed or is gone is neither an acceptance nor a refusal:
// the next pass will see.
func (a *Attempts) Note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.excess--
	case NotAsked(err):
		a.over = a.over || RefusesAll(err)
	case errors.Is(err, ErrSkipped), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
	default:
		a.excess++
		a.over = a.over || RefusesAll(err) || a.excess >= maxRefused
	}
}

// each makes requests, as long as more are made.
func (a *Attempts) each(do func(ctx context.Context, i int) error) func(ctx context.Context, i int) error {
	return func(ctx context.Context, i int) error {
		if a.Over() {
			return ErrSkipped
		}
		err := do(ctx, i)
		a.Note(err)
		return err
	}
}
