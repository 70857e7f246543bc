// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

// StatusStrategy updates the status of LeaderWorkerSets.
type StatusStrategy struct {
	Strategy
}

// NewStatusStrategy derives the strategy of the status subresource.
func NewStatusStrategy(s Strategy) StatusStrategy { return StatusStrategy{Strategy: s} }

var (
	_ rest.RESTUpdateStrategy  = StatusStrategy{}
	_ rest.ResetFieldsStrategy = StatusStrategy{}
)

// GetResetFields names what a write of the status never changes.
func (StatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		servedVersion: fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec")),
	}
}

// PrepareForUpdate takes nothing but the status, and the record of who wrote it, from the request. What the server alone writes
// into the status stays as it is.
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet)
	status, managedFields := next.Status, next.ManagedFields
	*next = *prev.DeepCopy()
	status.LastAction = next.Status.LastAction
	next.Status, next.ManagedFields = status, managedFields
}

// ValidateUpdate checks a changed status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateLeaderWorkerSetStatusUpdate(obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet))
}

// WarningsOnUpdate is silent: who writes the status cannot change the spec.
func (StatusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// ScaleStrategy updates the number of groups, on behalf of autoscalers and of kubectl scale.
type ScaleStrategy struct {
	Strategy
}

// NewScaleStrategy derives the strategy of the scale subresource.
func NewScaleStrategy(s Strategy) ScaleStrategy { return ScaleStrategy{Strategy: s} }

var _ rest.RESTUpdateStrategy = ScaleStrategy{}

// ValidateUpdate checks the range of replicas only, as the schema of upstream does. The rules that depend on replicas are not checked: an
// autoscaler that went from 10 groups to 5 would be refused because 10% of 5 groups is 0. The controller copes with such sets.
func (ScaleStrategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return validation.ValidateLeaderWorkerSetScale(obj.(*leaderworkerset.LeaderWorkerSet))
}

// ActionStrategy updates LeaderWorkerSets on behalf of who may not edit them.
type ActionStrategy struct {
	Strategy
}

// NewActionStrategy derives the strategy of the subresources that act on a set.
func NewActionStrategy(s Strategy) ActionStrategy { return ActionStrategy{Strategy: s} }

var _ rest.RESTUpdateStrategy = ActionStrategy{}

// PrepareForUpdate takes nothing but what actions change from the changed object: spec.paused, what a rollback returns to, and the
// status. Who owns which field stays as it is: an action is no manager that would go on to want a value.
func (ActionStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet)
	changed := *next
	*next = *prev.DeepCopy()
	next.Status = changed.Status
	next.Spec.Paused = changed.Spec.Paused
	next.Spec.LeaderWorkerTemplate, next.Spec.NetworkConfig = changed.Spec.LeaderWorkerTemplate, changed.Spec.NetworkConfig
	normalize(&next.Spec.LeaderWorkerTemplate)
	if !equality.Semantic.DeepEqual(next.Spec, prev.Spec) {
		next.Generation = prev.Generation + 1
	}
}

// ValidateUpdate checks the changed set as an edit, and its status.
func (s ActionStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	next, prev := obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet)
	return append(s.Strategy.ValidateUpdate(ctx, obj, old), validation.ValidateLeaderWorkerSetStatusUpdate(next, prev)...)
}

// WarningsOnUpdate is silent: a response to an action has a message of its own.
func (ActionStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
