// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disaggregatedset holds the strategies of the DisaggregatedSet resource and of its status.
package disaggregatedset

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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/templates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/warnings"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset"
)

// servedVersion keys the reset fields: the only version that the group serves.
const servedVersion = fieldpath.APIVersion(disaggregatedset.GroupName + "/v1")

// Strategy creates, updates and deletes DisaggregatedSets.
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

// NamespaceScoped is true: DisaggregatedSets live in namespaces.
func (Strategy) NamespaceScoped() bool { return true }

// DefaultGarbageCollectionPolicy deletes the children with their set, in the background.
func (Strategy) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.DeleteDependents
}

// GetResetFields names what a write of the main resource never changes, so that appliers do not own it.
func (Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		servedVersion: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate drops the status, and what templates cannot have.
func (Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	ds := obj.(*disaggregatedset.DisaggregatedSet)
	prune(ds)
	ds.Status = disaggregatedset.DisaggregatedSetStatus{}
	ds.Generation = 1
}

// PrepareForUpdate keeps the status, drops what templates cannot have, and counts a change of the spec in the generation.
func (Strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*disaggregatedset.DisaggregatedSet), old.(*disaggregatedset.DisaggregatedSet)
	prune(next)
	next.Status = prev.Status
	if !equality.Semantic.DeepEqual(next.Spec, prev.Spec) {
		next.Generation = prev.Generation + 1
	}
}

// prune keeps of the metadata of roles and templates what the published schema has.
func prune(ds *disaggregatedset.DisaggregatedSet) {
	for i := range ds.Spec.Roles {
		role := &ds.Spec.Roles[i]
		role.ObjectMeta = templates.Metadata(role.ObjectMeta)
		template := &role.Spec.LeaderWorkerTemplate
		template.WorkerTemplate.ObjectMeta = templates.Metadata(template.WorkerTemplate.ObjectMeta)
		if leader := template.LeaderTemplate; leader != nil {
			leader.ObjectMeta = templates.Metadata(leader.ObjectMeta)
		}
		for j := range template.VolumeClaimTemplates {
			claim := &template.VolumeClaimTemplates[j]
			claim.ObjectMeta = templates.Metadata(claim.ObjectMeta)
		}
	}
}

// Validate checks a new DisaggregatedSet.
func (Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateDisaggregatedSetCreate(obj.(*disaggregatedset.DisaggregatedSet))
}

// ValidateUpdate checks a changed DisaggregatedSet. The generic metadata rules were checked by the caller.
func (Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateDisaggregatedSetUpdate(obj.(*disaggregatedset.DisaggregatedSet), old.(*disaggregatedset.DisaggregatedSet))
}

// WarningsOnCreate returns warnings about replicas that are ignored, names that leave no room, and pods that cannot be created.
func (Strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return warningsOf(obj.(*disaggregatedset.DisaggregatedSet))
}

// WarningsOnUpdate returns the warnings that this write introduces.
func (Strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warnings.Introduced(warningsOf(obj.(*disaggregatedset.DisaggregatedSet)), warningsOf(old.(*disaggregatedset.DisaggregatedSet)))
}

// warningsOf returns the warnings about a set. Its LeaderWorkerSets get those about their templates too, but no user creates them.
func warningsOf(ds *disaggregatedset.DisaggregatedSet) []string {
	w := &warnings.List{}
	for _, warning := range validation.Warnings(ds) {
		w.Append(warning)
	}
	for i := range ds.Spec.Roles {
		path := field.NewPath("spec", "roles").Index(i).Child("spec", "leaderWorkerTemplate")
		for _, warning := range leaderworkerset.TemplateWarnings(&ds.Spec.Roles[i].Spec.LeaderWorkerTemplate, path) {
			w.Append(warning)
		}
	}
	return w.Texts()
}

// Canonicalize does nothing: the stored form is what was validated.
func (Strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: PUT of a name that does not exist is NotFound.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false: PUT needs a resourceVersion.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// StatusStrategy updates the status of DisaggregatedSets.
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
	next, prev := obj.(*disaggregatedset.DisaggregatedSet), old.(*disaggregatedset.DisaggregatedSet)
	status, managedFields := next.Status, next.ManagedFields
	*next = *prev.DeepCopy()
	next.Status, next.ManagedFields = status, managedFields
}

// ValidateUpdate checks a changed status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateDisaggregatedSetStatusUpdate(obj.(*disaggregatedset.DisaggregatedSet), old.(*disaggregatedset.DisaggregatedSet))
}

// WarningsOnUpdate is silent: who writes the status cannot change the spec.
func (StatusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
