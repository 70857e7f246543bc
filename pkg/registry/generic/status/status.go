// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status serves the status subresource of any kind.
package status

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
)

// Strategy is the strategy of updates of the status.
type Strategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// REST serves the status over the store of the main resource.
type REST struct {
	store *registry.Store
}

// New returns the storage of the status subresource, over the store of the main resource, which must be complete.
func New(main *registry.Store, strategy Strategy) *REST {
	store := *main
	store.UpdateStrategy = bounds.UpdateStrategy{RESTUpdateStrategy: strategy}
	store.ResetFieldsStrategy = strategy
	return &REST{store: &store}
}

var (
	_ rest.Patcher             = &REST{}
	_ rest.TableConvertor      = &REST{}
	_ rest.ResetFieldsStrategy = &REST{}
)

// New returns an empty object of the main resource.
func (r *REST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store is destroyed with the main resource.
func (r *REST) Destroy() {}

// Get returns the object.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of an object that exists; it never creates one, not even for an applier.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields names what a write of the status never changes.
func (r *REST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable prints the object as the main resource does.
func (r *REST) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}
