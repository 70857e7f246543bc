// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// Pure is an action whose requests have a spec S and a status A, and which is a pure function of the object P, the spec and the
// call C: who asks, and when.
type Pure[P runtime.Object, T, S, A, C any, R Request[T]] struct {
	// Kind is the served kind of the request.
	Kind schema.GroupVersionKind
	// Validate checks the spec of a request by itself.
	Validate func(*S) field.ErrorList
	// Act changes the object, and returns the status of the request, or an error.
	Act func(P, *S, C) (*A, error)
	// Prepare, if it is set, reads what the action needs besides the object, and returns the function to use in place of Act.
	Prepare func(context.Context, R) (func(P, *S, C) (*A, error), error)
	// Warn, if it is set, returns what a client is warned of, from the object as it was before.
	Warn func(P, *S) []string
	// Parts returns where a request has its spec and status.
	Parts func(R) (*S, *A)
	// Call returns the call.
	Call func(user string, now time.Time) C
	// Event describes a request, which changed the object, and its status.
	Event func(kind string, request metav1.Object, status *A) provider.Event
}

// NewPure returns the storage of a pure action.
func NewPure[P runtime.Object, T, S, A, C any, R Request[T]](target Target, pure Pure[P, T, S, A, C, R]) rest.Storage {
	action := Action[P, T, R]{
		Kind: pure.Kind,
		Validate: func(request R) field.ErrorList {
			spec, _ := pure.Parts(request)
			return pure.Validate(spec)
		},
		Act: pure.on(pure.Act),
		Event: func(request R) provider.Event {
			_, status := pure.Parts(request)
			return pure.Event(pure.Kind.Kind, request, status)
		},
	}
	if pure.Warn != nil {
		action.Warn = func(object P, request R) []string {
			spec, _ := pure.Parts(request)
			return pure.Warn(object, spec)
		}
	}
	if pure.Prepare != nil {
		action.Prepare = func(ctx context.Context, request R) (ActFunc[P, R], error) {
			act, err := pure.Prepare(ctx, request)
			return pure.on(act), err
		}
	}
	return New(target, action)
}

// on returns what a pure function does to an object for a request.
func (p Pure[P, T, S, A, C, R]) on(act func(P, *S, C) (*A, error)) ActFunc[P, R] {
	return func(object P, request R, user string, now time.Time) error {
		spec, status := p.Parts(request)
		answer, err := act(object, spec, p.Call(user, now))
		if err == nil {
			*status = *answer
		}
		return err
	}
}
