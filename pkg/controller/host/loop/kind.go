// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
)

// Kind is what a Loop needs to know of a kind of objects. O is the type of an object, S is what is observed of it, P is a plan, and R are
// the results of its writes. A kind embeds Defaults for those methods that it has no use for.
type Kind[O Object, S, P, R any] interface {
	// Owner returns an object from the cache; nil if there is none.
	Owner(key cache.ObjectName) (O, error)
	// Moved returns whether the status of an object, as the cache has it now, asks for other children than the observed status did.
	Moved(observed, now O) bool
	// Forgotten is called for an object that is gone, beside Host.Forget.
	Forgotten(key cache.ObjectName)
	// Absent does what is left to do for an object that is gone or cannot be read.
	Absent(ctx context.Context, key cache.ObjectName) error

	// Waits returns whether the object waits until caches show what they are known to lack.
	Waits(ctx context.Context, key cache.ObjectName, owner O) (bool, error)
	// Children returns the beginning of an observation, and the children whose deletions it must show.
	Children(ctx context.Context, key cache.ObjectName, owner O) (*S, []consistency.Child, error)
	// Complete adds the rest to an observation. It returns true if caches lag behind what is known otherwise.
	Complete(ctx context.Context, key cache.ObjectName, obs *S) (lags bool, err error)
	// Decide returns what to do. It is a pure function.
	Decide(obs S) P
	// Questions names what a plan asks for, because the decision depends on it and the observation does not have it; none
	// for a plan that can be applied.
	Questions(p P) []string
	// Answer adds all that a plan asks for to the observation. It has no other effect.
	Answer(ctx context.Context, obs *S, p P) error
	// Lags returns whether a plan is to wait for caches to show what an answer has. Then it is not applied.
	Lags(p P) bool
	// Claim makes the writes on which the rest of a plan depends, because the API may refuse them or others may be first. It adds the result
	// to the observation, and returns true if the decision has to be made once more. That happens once in a sync.
	Claim(ctx context.Context, obs *S, p P) (again bool, err error)
	// Apply writes children, and decides nothing.
	Apply(ctx context.Context, obs *S, p P) (R, error)
	// Conclude notes what is remembered whatever becomes of the status, and returns what is left to do.
	Conclude(obs *S, p P, results R) Outcome[O]
}

// Defaults are the methods of a kind whose children depend on no status, that remembers nothing of objects that are gone, and whose
// decisions wait for nothing, ask for nothing and claim nothing.
type Defaults[O Object, S, P any] struct{}

// Moved implements Kind.
func (Defaults[O, S, P]) Moved(O, O) bool { return false }

// Forgotten implements Kind.
func (Defaults[O, S, P]) Forgotten(cache.ObjectName) {}

// Absent implements Kind.
func (Defaults[O, S, P]) Absent(context.Context, cache.ObjectName) error { return nil }

// Waits implements Kind.
func (Defaults[O, S, P]) Waits(context.Context, cache.ObjectName, O) (bool, error) { return false, nil }

// Questions implements Kind.
func (Defaults[O, S, P]) Questions(P) []string { return nil }

// Answer implements Kind.
func (Defaults[O, S, P]) Answer(context.Context, *S, P) error { return nil }

// Lags implements Kind.
func (Defaults[O, S, P]) Lags(P) bool { return false }

// Claim implements Kind.
func (Defaults[O, S, P]) Claim(context.Context, *S, P) (bool, error) { return false, nil }
