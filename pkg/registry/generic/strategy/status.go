// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

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

// PrepareForUpdate takes nothing but the status, and the record of who wrote it, from the request.
func (s Status[P, S]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next := obj.(P)
	managedFields := next.GetManagedFields()
	s.TakeStatus(next, old.(P))
	next.SetManagedFields(managedFields)
}

// ValidateUpdate checks a changed status.
func (s Status[P, S]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.kind.ValidateStatus(obj.(P), old.(P))
}

// WarningsOnUpdate is silent: who writes the status cannot change the spec.
func (Status[P, S]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
