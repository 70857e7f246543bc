// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strategy holds what the strategies of all kinds share: the answers that are the same for all, warnings, templates, and how a
// client wants fields to be validated. A kind describes its objects with a Kind, embeds Main in its
// strategy, and replaces only the methods that do more. Status is the strategy of the status subresource.
package strategy

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Object is a pointer to an internal type.
type Object[P any] interface {
	runtime.Object
	metav1.Object
	DeepCopyInto(P)
}

// Kind describes the objects of a kind. P is a pointer to their internal type, S is the type of their status.
type Kind[P Object[P], S any] struct {
	// Version is the only version that the group serves. It keys the reset fields.
	Version schema.GroupVersion
	// Parts returns pointers to the spec and to the status of an object.
	Parts func(P) (spec any, status *S)
	// ValidateCreate checks a new object. The generic metadata rules were checked by the caller, as for every validation.
	ValidateCreate func(P) field.ErrorList
	// ValidateUpdate checks a changed object.
	ValidateUpdate func(next, prev P) field.ErrorList
	// ValidateStatus checks a changed status.
	ValidateStatus func(next, prev P) field.ErrorList
	// Warnings returns warnings about common mistakes that are not errors. It is nil for a kind without warnings.
	Warnings func(P) []string
	// OwnSpec returns the fields of the spec that upstream's types lack. An update that leaves them out keeps them if its client may not know
	// them. It is nil for a kind without such fields.
	OwnSpec func(P) []Field
	// OwnStatus returns the fields of the status that upstream's types lack, in the same way.
	OwnStatus func(P) []Field
}

// Main is the strategy of the main resource of a kind.
type Main[P Object[P], S any] struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind Kind[P, S]
}

// New returns the strategy of the main resource. The typer knows the kinds of the group.
func New[P Object[P], S any](typer runtime.ObjectTyper, kind Kind[P, S]) Main[P, S] {
	return Main[P, S]{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, kind: kind}
}

var (
	_ rest.RESTCreateUpdateStrategy        = Main[*metav1.PartialObjectMetadata, any]{}
	_ rest.GarbageCollectionDeleteStrategy = Main[*metav1.PartialObjectMetadata, any]{}
	_ rest.ResetFieldsStrategy             = Main[*metav1.PartialObjectMetadata, any]{}
)

// NamespaceScoped is true: the objects of all kinds live in namespaces.
func (Main[P, S]) NamespaceScoped() bool { return true }

// DefaultGarbageCollectionPolicy deletes the children with their owner, in the background.
func (Main[P, S]) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.DeleteDependents
}

// GetResetFields names what a write of the main resource never changes, so that appliers do not own it.
func (m Main[P, S]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return m.reset("status")
}

func (m Main[P, S]) reset(fields ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range fields {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(m.kind.Version.String()): set}
}

// PrepareForCreate drops the status, and gives the object its first generation.
func (m Main[P, S]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	next := obj.(P)
	_, status := m.kind.Parts(next)
	var none S
	*status = none
	next.SetGeneration(1)
}

// PrepareForUpdate keeps the status and what clients may not know, and counts a change of the spec in the generation.
func (m Main[P, S]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	next, prev := obj.(P), old.(P)
	m.KeepSpec(ctx, next, prev)
	_, status := m.kind.Parts(next)
	_, stored := m.kind.Parts(prev)
	*status = *stored
	m.CountChange(next, prev)
}

// KeepSpec keeps fields of the stored spec that a client has left out and may not know, and warns about them.
func (m Main[P, S]) KeepSpec(ctx context.Context, next, prev P) {
	warnOfKept(ctx, keep(ctx, next, prev, m.kind.OwnSpec))
}

// CountChange counts a change of the spec in the generation, and returns whether the spec changed.
func (m Main[P, S]) CountChange(next, prev P) bool {
	spec, _ := m.kind.Parts(next)
	stored, _ := m.kind.Parts(prev)
	if equality.Semantic.DeepEqual(spec, stored) {
		return false
	}
	next.SetGeneration(prev.GetGeneration() + 1)
	return true
}

// TakeStatus makes the next object a copy of the stored one, except for its status.
func (m Main[P, S]) TakeStatus(next, prev P) {
	_, status := m.kind.Parts(next)
	changed := *status
	prev.DeepCopyInto(next)
	*status = changed
}

// Validate checks a new object.
func (m Main[P, S]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return m.kind.ValidateCreate(obj.(P))
}

// ValidateUpdate checks a changed object.
func (m Main[P, S]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return m.kind.ValidateUpdate(obj.(P), old.(P))
}

// WarningsOnCreate returns the warnings about a new object.
func (m Main[P, S]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if m.kind.Warnings == nil {
		return nil
	}
	return m.kind.Warnings(obj.(P))
}

// WarningsOnUpdate returns the warnings that this write introduces.
func (m Main[P, S]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	return IntroducedWarnings(m.WarningsOnCreate(ctx, obj), m.WarningsOnCreate(ctx, old))
}

// Canonicalize does nothing: the stored form is what was validated.
func (Main[P, S]) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: PUT of a name that does not exist is NotFound, as for a custom resource.
func (Main[P, S]) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false: PUT needs a resourceVersion, as for a custom resource.
func (Main[P, S]) AllowUnconditionalUpdate(context.Context) bool { return false }

// User returns the name of the user whose request it is; nothing if the request has no user.
func User(ctx context.Context) string {
	if user, known := request.UserFrom(ctx); known {
		return user.GetName()
	}
	return ""
}

// Status is the strategy of the status subresource of a kind.
type Status[P Object[P], S any] struct {
	Main[P, S]
}

// NewStatus derives the strategy of the status subresource from that of the main resource.
func NewStatus[P Object[P], S any](main Main[P, S]) Status[P, S] { return Status[P, S]{Main: main} }

var (
	_ rest.RESTUpdateStrategy  = Status[*metav1.PartialObjectMetadata, any]{}
	_ rest.ResetFieldsStrategy = Status[*metav1.PartialObjectMetadata, any]{}
)

// GetResetFields names what a write of the status never changes.
func (s Status[P, S]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.reset("metadata", "spec")
}

// PrepareForUpdate takes nothing but the status, and the record of who wrote it, from the request. It keeps fields of the stored
// status that the client has left out and may not know.
func (s Status[P, S]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	next, prev := obj.(P), old.(P)
	managedFields := next.GetManagedFields()
	s.TakeStatus(next, prev)
	next.SetManagedFields(managedFields)
	keep(ctx, next, prev, s.kind.OwnStatus)
}

// ValidateUpdate checks a changed status.
func (s Status[P, S]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.kind.ValidateStatus(obj.(P), old.(P))
}

// WarningsOnUpdate is silent: who writes the status cannot change the spec.
func (Status[P, S]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// TemplateMetadata returns what the published schemas have of the metadata of a template: the rest would be pruned from a custom resource.
func TemplateMetadata(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        m.Name,
		Namespace:   m.Namespace,
		Labels:      m.Labels,
		Annotations: m.Annotations,
		Finalizers:  m.Finalizers,
	}
}
