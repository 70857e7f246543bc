// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobset holds the strategies of the JobSet resource: what the server fills in, clears, checks and warns about
// when a JobSet is created or changed, on the main resource and on its status.
package jobset

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

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/warnings"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// servedVersion keys the reset fields: the only version that the group serves.
const servedVersion = fieldpath.APIVersion(jobset.GroupName + "/v1alpha2")

// Strategy creates, updates and deletes JobSets.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	gates gates.Gates
	now   func() time.Time
}

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group. The clock sets the times in the history,
// in which the server records who suspended or resumed a set.
func NewStrategy(typer runtime.ObjectTyper, gates gates.Gates, now func() time.Time) Strategy {
	return Strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, gates: gates, now: now}
}

var (
	_ rest.RESTCreateUpdateStrategy        = Strategy{}
	_ rest.GarbageCollectionDeleteStrategy = Strategy{}
	_ rest.ResetFieldsStrategy             = Strategy{}
)

// NamespaceScoped is true: JobSets live in namespaces.
func (Strategy) NamespaceScoped() bool { return true }

// DefaultGarbageCollectionPolicy deletes the Jobs, Service and claims with their set, in the background.
func (Strategy) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.DeleteDependents
}

// GetResetFields names what a write of the main resource never changes, so that appliers do not own it.
func (Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		servedVersion: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate drops the status and fields of features that are off, and fills in the defaults that are applied on create only.
func (s Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	js := obj.(*jobset.JobSet)
	js.Status = jobset.JobSetStatus{}
	js.Generation = 1
	s.dropDisabledSpec(ctx, &js.Spec, &jobset.JobSetSpec{})
	normalizeTemplates(&js.Spec)
	SetCreateDefaults(&js.Spec)
}

// PrepareForUpdate keeps the status and counts a change of the spec in the generation. What the write says
// about the attempt is recorded in the status: a checkpoint of the job, and the user who suspended or resumed the set.
func (s Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	next, prev := obj.(*jobset.JobSet), old.(*jobset.JobSet)
	next.Status = prev.Status
	s.dropDisabledSpec(ctx, &next.Spec, &prev.Spec)
	normalizeTemplates(&next.Spec)
	keepCreateDefaults(&next.Spec, &prev.Spec)
	if !equality.Semantic.DeepEqual(next.Spec, prev.Spec) {
		next.Generation = prev.Generation + 1
	}
	name := ""
	if user, known := request.UserFrom(ctx); known {
		name = user.GetName()
	}
	actions.RecordEdit(next, prev, s.Call(name, s.now()))
}

// Call is a call of an action by the user at the time, with the accounts that the gates ask for.
func (s Strategy) Call(user string, now time.Time) actions.Call {
	return actions.Call{User: user, Now: now, Gates: s.gates}
}

// Validate checks a new JobSet.
func (s Strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	js := obj.(*jobset.JobSet)
	return append(s.refuseDisabled(ctx, &js.Spec, &jobset.JobSetSpec{}), validation.ValidateJobSetCreate(js, s.allowed(nil))...)
}

// ValidateUpdate checks a changed JobSet. The generic metadata rules were checked by the caller.
func (s Strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	next, prev := obj.(*jobset.JobSet), old.(*jobset.JobSet)
	return append(s.refuseDisabled(ctx, &next.Spec, &prev.Spec), validation.ValidateJobSetUpdate(next, prev, s.allowed(prev))...)
}

// allowed returns what validation allows: what the gates allow, and what the stored object uses already.
func (s Strategy) allowed(prev *jobset.JobSet) gates.Gates {
	allowed := s.gates
	if prev != nil {
		allowed.InPlaceRestart = allowed.InPlaceRestart || validation.UsesInPlaceRestart(&prev.Spec)
		allowed.JobSetWorkloadAwareSchedulingAPI = allowed.JobSetWorkloadAwareSchedulingAPI || prev.Spec.Scheduling != nil
		allowed.RestartJob = allowed.RestartJob || validation.UsesRestartJob(&prev.Spec)
	}
	return allowed
}

// WarningsOnCreate returns warnings about common mistakes that are not errors.
func (s Strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return Warnings(obj.(*jobset.JobSet), s.gates)
}

// WarningsOnUpdate returns the warnings that this write introduces.
func (s Strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warnings.Introduced(Warnings(obj.(*jobset.JobSet), s.gates), Warnings(old.(*jobset.JobSet), s.gates))
}

// Canonicalize does nothing: the stored form is what was validated.
func (Strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: PUT of a name that does not exist is NotFound, as for a custom resource.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false: PUT needs a resourceVersion, as for a custom resource.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// StatusStrategy updates the status of JobSets.
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
func (s StatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*jobset.JobSet), old.(*jobset.JobSet)
	status, managedFields := next.Status, next.ManagedFields
	*next = *prev.DeepCopy()
	next.Status, next.ManagedFields = status, managedFields
	dropDisabledStatus(&next.Status, &prev.Status, s.gates)
}

// ValidateUpdate checks a changed status.
func (s StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	prev := old.(*jobset.JobSet)
	return validation.ValidateJobSetStatusUpdate(obj.(*jobset.JobSet), prev, s.allowed(prev))
}

// WarningsOnUpdate is silent: who writes the status cannot change the spec.
func (StatusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
