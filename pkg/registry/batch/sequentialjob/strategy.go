// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sequentialjob holds the strategies of the SequentialJob resource: what the server fills in, clears, checks and warns
// about when a sequence is created or changed, on the main resource and on its status.
package sequentialjob

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/warnings"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
)

// servedVersion keys the reset fields: the only version that the group serves.
const servedVersion = fieldpath.APIVersion(batch.GroupName + "/v1alpha1")

// Strategy creates, updates and deletes SequentialJobs.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	options validation.Options
	now     func() time.Time
}

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group; the gates apply to JobSets that are steps.
// The clock sets the times in status.lastAction, in which the server records who suspended or resumed a sequence, and of steps that a
// change runs again.
func NewStrategy(typer runtime.ObjectTyper, gates gates.Gates, now func() time.Time) Strategy {
	return Strategy{
		ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, now: now,
		options: validation.Options{Gates: gates, Default: jobset.SetCreateDefaults},
	}
}

var (
	_ rest.RESTCreateUpdateStrategy        = Strategy{}
	_ rest.GarbageCollectionDeleteStrategy = Strategy{}
	_ rest.ResetFieldsStrategy             = Strategy{}
)

// NamespaceScoped is true: SequentialJobs live in namespaces.
func (Strategy) NamespaceScoped() bool { return true }

// DefaultGarbageCollectionPolicy deletes the children with their sequence, in the background.
func (Strategy) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.DeleteDependents
}

// GetResetFields names what a write of the main resource never changes, so that appliers do not own it.
func (Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		servedVersion: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate drops the status, except for what the server derives.
func (Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	sj := obj.(*batch.SequentialJob)
	sj.Generation = 1
	sj.Status = batch.SequentialJobStatus{StepsGeneration: sj.Generation}
	actions.SetPhase(sj)
}

// PrepareForUpdate keeps the status, counts a change of the spec in the generation, and records in the status what a change
// of steps means for the one that runs, and who suspended or resumed the sequence.
func (s Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	next, prev := obj.(*batch.SequentialJob), old.(*batch.SequentialJob)
	next.Status = *prev.Status.DeepCopy()
	if !equality.Semantic.DeepEqual(next.Spec, prev.Spec) {
		call := actions.Call{Now: s.now()}
		if user, known := request.UserFrom(ctx); known {
			call.User = user.GetName()
		}
		next.Generation = prev.Generation + 1
		recordStepChanges(next, prev, call)
		actions.RecordEdit(next, prev, call)
	}
	actions.SetPhase(next)
}

// Validate checks a new SequentialJob.
func (s Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateSequentialJobCreate(obj.(*batch.SequentialJob), s.options)
}

// ValidateUpdate checks a changed SequentialJob. The generic metadata rules were checked by the caller.
func (s Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSequentialJobUpdate(obj.(*batch.SequentialJob), old.(*batch.SequentialJob), s.options)
}

// WarningsOnCreate returns warnings about common mistakes that are not errors.
func (s Strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return s.warnings(obj.(*batch.SequentialJob))
}

// WarningsOnUpdate returns the warnings that this write introduces.
func (s Strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warnings.Introduced(s.warnings(obj.(*batch.SequentialJob)), s.warnings(old.(*batch.SequentialJob)))
}

// Canonicalize does nothing: the stored form is what was validated.
func (Strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: PUT of a name that does not exist is NotFound.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false: PUT needs a resourceVersion.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// StatusStrategy updates the status of SequentialJobs.
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

// PrepareForUpdate takes nothing but the status, and the record of who wrote it, from the request. What the server alone
// writes into the status stays as it is.
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*batch.SequentialJob), old.(*batch.SequentialJob)
	status, managedFields := next.Status, next.ManagedFields
	*next = *prev.DeepCopy()
	stepsGeneration, lastAction := next.Status.StepsGeneration, next.Status.LastAction
	next.Status, next.ManagedFields = status, managedFields
	next.Status.StepsGeneration, next.Status.LastAction = stepsGeneration, lastAction
	actions.SetPhase(next)
}

// ValidateUpdate checks a changed status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSequentialJobStatusUpdate(obj.(*batch.SequentialJob), old.(*batch.SequentialJob))
}

// WarningsOnUpdate is silent: who writes the status cannot change the spec.
func (StatusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
