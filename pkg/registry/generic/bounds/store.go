// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// Store serves a main resource with bounded answers about metadata.
type Store struct {
	*registry.Store
	kind       schema.GroupKind
	shortNames []string
	categories []string
}

// NewStore returns the storage of the main resource of a kind over its store, with other names for kubectl.
func NewStore(store *registry.Store, kind schema.GroupKind, shortNames ...string) *Store {
	return &Store{Store: store, kind: kind, shortNames: shortNames}
}

// InCategories adds the resource to groups of resources that kubectl understands, such as all.
func (s *Store) InCategories(categories ...string) *Store {
	s.categories = categories
	return s
}

// Categories returns the groups of resources that the resource belongs to.
func (s *Store) Categories() []string { return s.categories }

// ShortNames returns the names that kubectl understands beside those of the resource.
func (s *Store) ShortNames() []string { return s.shortNames }

var (
	_ rest.StandardStorage      = &Store{}
	_ rest.SingularNameProvider = &Store{}
	_ rest.TableConvertor       = &Store{}
	_ rest.ShortNamesProvider   = &Store{}
	_ rest.CategoriesProvider   = &Store{}
	_ rest.ResetFieldsStrategy  = &Store{}
)

// Create creates an object. Its strategy knows how the client wants fields to be validated.
func (s *Store) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (
	runtime.Object, error) {
	return s.Store.Create(strategy.WithFieldValidation(ctx, options.FieldValidation), obj, createValidation, options)
}

// Update changes an object, or creates the one of an applier.
func (s *Store) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	ctx = strategy.WithFieldValidation(ctx, options.FieldValidation)
	return s.Store.Update(ctx, name, Metadata(objInfo, s.kind), createValidation, updateValidation, forceAllowCreate, options)
}
