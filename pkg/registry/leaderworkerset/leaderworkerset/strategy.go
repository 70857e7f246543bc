// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaderworkerset holds the strategies of the LeaderWorkerSet resource: what the server fills in, clears, checks and warns
// about when a set is created or changed, on the main resource, on its status, on its scale and by actions.
package leaderworkerset

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/templates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/actions"
)

// servedVersion keys the reset fields: the only version that the group serves.
const servedVersion = fieldpath.APIVersion(leaderworkerset.GroupName + "/v1")

// Strategy creates, updates and deletes LeaderWorkerSets.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	now func() time.Time
}

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group. The clock sets the times in
// status.lastAction, in which the server records who paused or resumed a set.
func NewStrategy(typer runtime.ObjectTyper, now func() time.Time) Strategy {
	return Strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, now: now}
}

var (
	_ rest.RESTCreateUpdateStrategy        = Strategy{}
	_ rest.GarbageCollectionDeleteStrategy = Strategy{}
	_ rest.ResetFieldsStrategy             = Strategy{}
)

// NamespaceScoped is true: LeaderWorkerSets live in namespaces.
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

// PrepareForCreate drops the status.
func (Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	lws := obj.(*leaderworkerset.LeaderWorkerSet)
	lws.Status = leaderworkerset.LeaderWorkerSetStatus{}
	lws.Generation = 1
	normalize(&lws.Spec.LeaderWorkerTemplate)
}

// PrepareForUpdate keeps the status, counts a change of the spec in the generation, and records who paused or resumed the set.
func (s Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	next, prev := obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet)
	next.Status = *prev.Status.DeepCopy()
	normalize(&next.Spec.LeaderWorkerTemplate)
	if equality.Semantic.DeepEqual(next.Spec, prev.Spec) {
		return
	}
	next.Generation = prev.Generation + 1
	call := actions.Call{Now: s.now()}
	if user, known := request.UserFrom(ctx); known {
		call.User = user.GetName()
	}
	actions.RecordEdit(next, prev, call)
}

// normalize brings a template into the form in which it is stored: that of the published schema, with the present name of the
// restart policy. The kind of claims goes without saying; their encoding in the store has none.
func normalize(template *leaderworkerset.LeaderWorkerTemplate) {
	if template.RestartPolicy == leaderworkerset.RestartPolicyDefault {
		template.RestartPolicy = leaderworkerset.RestartPolicyNone
	}
	template.WorkerTemplate.ObjectMeta = templates.Metadata(template.WorkerTemplate.ObjectMeta)
	if template.LeaderTemplate != nil {
		template.LeaderTemplate.ObjectMeta = templates.Metadata(template.LeaderTemplate.ObjectMeta)
	}
	for i := range template.VolumeClaimTemplates {
		claim := &template.VolumeClaimTemplates[i]
		claim.TypeMeta, claim.ObjectMeta = metav1.TypeMeta{}, templates.Metadata(claim.ObjectMeta)
	}
}

// Validate checks a new set.
func (Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateLeaderWorkerSetCreate(obj.(*leaderworkerset.LeaderWorkerSet))
}

// ValidateUpdate checks a changed set. The generic metadata rules were checked by the caller.
func (Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateLeaderWorkerSetUpdate(obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet))
}

// WarningsOnCreate returns warnings about common mistakes that are not errors.
func (Strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return Warnings(obj.(*leaderworkerset.LeaderWorkerSet))
}

// WarningsOnUpdate returns the warnings that this write introduces, and those about the change.
func (Strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warningsOnUpdate(obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet))
}

// Canonicalize does nothing: the stored form is what was validated.
func (Strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: PUT of a name that does not exist is NotFound, as for a custom resource.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false: PUT needs a resourceVersion, as for a custom resource.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return false }
