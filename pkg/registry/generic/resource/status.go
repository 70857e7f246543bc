// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
)

// StatusStrategy is the strategy of updates of the status.
type StatusStrategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// status serves the status subresource over the store of the main resource.
type status struct {
	store *registry.Store
	kind  schema.GroupKind
}

// newStatus returns the storage of the status subresource, over the store of the main resource, which must be complete.
func newStatus(main *registry.Store, kind schema.GroupKind, strategy StatusStrategy) *status {
	store := *main
	store.UpdateStrategy = bounds.UpdateStrategy{RESTUpdateStrategy: strategy}
	store.ResetFieldsStrategy = strategy
	return &status{store: &store, kind: kind}
}

var (
	_ rest.Patcher             = &status{}
	_ rest.TableConvertor      = &status{}
	_ rest.ResetFieldsStrategy = &status{}
)

// New returns an empty object of the main resource.
func (s *status) New() runtime.Object { return s.store.New() }

// Destroy does nothing: the store is destroyed with the main resource.
func (s *status) Destroy() {}

// Get returns the object.
func (s *status) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update changes the status of an object that exists; it never creates one, not even for an applier.
func (s *status) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, bounds.Metadata(objInfo, s.kind), createValidation, updateValidation, false, options)
}

// GetResetFields names what a write of the status never changes.
func (s *status) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable prints the object as the main resource does.
func (s *status) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, tableOptions)
}
