// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rolescaler holds the strategies of the DisaggregatedSetRoleScaler resource and of its status.
package rolescaler

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/validation"
)

// servedVersion keys the reset fields: the only version that the group serves.
const servedVersion = fieldpath.APIVersion(disaggregatedset.GroupName + "/v1")

// Strategy creates, updates and deletes DisaggregatedSetRoleScalers.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return Strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator}
}

var (
	_ rest.RESTCreateUpdateStrategy        = Strategy{}
	_ rest.GarbageCollectionDeleteStrategy = Strategy{}
	_ rest.ResetFieldsStrategy             = Strategy{}
)

// NamespaceScoped is true: DisaggregatedSetRoleScalers live in namespaces.
func (Strategy) NamespaceScoped() bool { return true }

// DefaultGarbageCollectionPolicy is the policy of all kinds. A scaler owns nothing.
func (Strategy) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.DeleteDependents
}

// GetResetFields names what a write of the main resource never changes, so that appliers do not own it.
func (Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		servedVersion: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate drops the status.
func (Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	scaler := obj.(*disaggregatedset.DisaggregatedSetRoleScaler)
	scaler.Status = disaggregatedset.DisaggregatedSetRoleScalerStatus{}
	scaler.Generation = 1
}

// PrepareForUpdate keeps the status and counts a change of the spec in the generation.
func (Strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*disaggregatedset.DisaggregatedSetRoleScaler), old.(*disaggregatedset.DisaggregatedSetRoleScaler)
	next.Status = prev.Status
	if !equality.Semantic.DeepEqual(next.Spec, prev.Spec) {
		next.Generation = prev.Generation + 1
	}
}

// Validate checks a new DisaggregatedSetRoleScaler.
func (Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateScalerCreate(obj.(*disaggregatedset.DisaggregatedSetRoleScaler))
}

// ValidateUpdate checks a changed DisaggregatedSetRoleScaler. The generic metadata rules were checked by the caller.
func (Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateScalerUpdate(obj.(*disaggregatedset.DisaggregatedSetRoleScaler),
		old.(*disaggregatedset.DisaggregatedSetRoleScaler))
}

// WarningsOnCreate is silent.
func (Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate is silent.
func (Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Canonicalize does nothing: the stored form is what was validated.
func (Strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: PUT of a name that does not exist is NotFound.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false: PUT needs a resourceVersion.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// StatusStrategy updates the status of DisaggregatedSetRoleScalers.
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

// PrepareForUpdate takes nothing but the status, and the record of who wrote it, from the request.
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*disaggregatedset.DisaggregatedSetRoleScaler), old.(*disaggregatedset.DisaggregatedSetRoleScaler)
	status, managedFields := next.Status, next.ManagedFields
	*next = *prev.DeepCopy()
	next.Status, next.ManagedFields = status, managedFields
}

// ValidateUpdate checks a changed status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateScalerStatusUpdate(obj.(*disaggregatedset.DisaggregatedSetRoleScaler),
		old.(*disaggregatedset.DisaggregatedSetRoleScaler))
}
