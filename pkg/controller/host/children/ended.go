// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
)

// errSuperseded is why the context of a pass ends whose owner has changed.
var errSuperseded = errors.New("the object has changed since the decision")

// pass is one pass of the children of an owner.
type pass struct {
	goesOn func() bool
	end    context.CancelCauseFunc
}

type passKey struct{}

// While returns a context for the writes of one pass. It ends once Ended finds that goesOn returns false.
func While(ctx context.Context, goesOn func() bool) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	return context.WithValue(ctx, passKey{}, &pass{goesOn, end}), func() { end(nil) }
}

// Ended returns whether a pass begins no other request: its time is over, or what it was decided on holds no more. It is asked
// before each request, so that nothing is created for an owner that is known to be deleted.
func Ended(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	p, ok := ctx.Value(passKey{}).(*pass)
	if !ok || p.goesOn() {
		return false
	}
	p.end(errSuperseded)
	return true
}

// Superseded returns whether a pass has ended because what it was decided on holds no more.
func Superseded(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errSuperseded) }
