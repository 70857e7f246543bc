// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
)

// ActionStrategy updates SequentialJobs on behalf of who may not edit them.
type ActionStrategy struct {
	Strategy
}

// NewActionStrategy derives the strategy of the subresources that act on a SequentialJob.
func NewActionStrategy(s Strategy) ActionStrategy { return ActionStrategy{Strategy: s} }

var _ rest.RESTUpdateStrategy = ActionStrategy{}

// PrepareForUpdate takes nothing but spec.suspend and the status from the changed object. Who owns which field stays as it
// is: an action is no manager that would go on to want a value.
func (s ActionStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*batch.SequentialJob), old.(*batch.SequentialJob)
	suspend := next.Spec.Suspend
	s.TakeStatus(next, prev)
	next.Spec.Suspend = suspend
	s.CountChange(next, prev)
	actions.SetPhase(next)
}

// ValidateUpdate checks the changed status. An action may take back what the controller may not, such as that a step has
// completed. The change of the spec is right by itself.
func (ActionStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSequentialJobAction(obj.(*batch.SequentialJob), old.(*batch.SequentialJob))
}

// WarningsOnUpdate is silent: who acts on a SequentialJob cannot change what warnings are about.
func (ActionStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
