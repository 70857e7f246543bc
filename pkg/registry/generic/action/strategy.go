// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// layered stores what an action changes, by the strategy of the actions of a kind. What mutating admission changes on top of that is
// prepared and validated by the main strategy, as an edit of the object that the action left.
type layered struct {
	rest.RESTUpdateStrategy
	main rest.RESTUpdateStrategy
}

// PrepareForUpdate prepares the change of the action, and then the change of admission.
func (s layered) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	acted, more := s.acted(ctx, obj, old)
	if !more {
		s.RESTUpdateStrategy.PrepareForUpdate(ctx, obj, old)
		return
	}
	next, prev, after := accessor(obj), accessor(old), accessor(acted)
	generation := after.GetGeneration()
	after.SetGeneration(prev.GetGeneration())
	s.main.PrepareForUpdate(ctx, obj, acted)
	next.SetGeneration(max(generation, next.GetGeneration())) // both changes are one
}

// ValidateUpdate checks the change of the action, and the change of admission.
func (s layered) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old)
	if _, more := s.acted(ctx, obj, old); !more {
		return errs
	}
	for _, err := range s.main.ValidateUpdate(ctx, obj, old) {
		if !slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Error() == err.Error() }) {
			errs = append(errs, err)
		}
	}
	return errs
}

// acted returns the old object with what the action changed, and whether admission changed more.
func (s layered) acted(ctx context.Context, obj, old runtime.Object) (runtime.Object, bool) {
	if !differ(obj, old) {
		return obj, false
	}
	acted := obj.DeepCopyObject()
	s.RESTUpdateStrategy.PrepareForUpdate(ctx, acted, old)
	return acted, differ(obj, acted)
}
