// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

// ActionStrategy updates JobSets on behalf of who may not edit them.
type ActionStrategy struct {
	Strategy
}

// NewActionStrategy derives the strategy of the subresources that act on a JobSet.
func NewActionStrategy(s Strategy) ActionStrategy { return ActionStrategy{Strategy: s} }

var _ rest.RESTUpdateStrategy = ActionStrategy{}

// PrepareForUpdate takes nothing but spec.suspend and the status from the changed object. Who owns which field stays as it
// is: an action is no manager that would go on to want a value.
func (s ActionStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*jobset.JobSet), old.(*jobset.JobSet)
	suspend := next.Spec.Suspend
	s.TakeStatus(next, prev)
	next.Spec.Suspend = suspend
	s.CountChange(next, prev)
}

// ValidateUpdate checks the changed status. The change of the spec is right by itself.
func (s ActionStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	prev := old.(*jobset.JobSet)
	return validation.ValidateJobSetStatusUpdate(obj.(*jobset.JobSet), prev, s.allowed(prev))
}

// WarningsOnUpdate is silent: who acts on a JobSet cannot change what warnings are about.
func (ActionStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
