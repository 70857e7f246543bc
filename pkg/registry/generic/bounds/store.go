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
)

// Store serves a main resource with bounded answers about metadata.
type Store struct {
	*registry.Store
	kind schema.GroupKind
}

// NewStore returns the storage of the main resource of a kind over its store.
func NewStore(store *registry.Store, kind schema.GroupKind) *Store {
	return &Store{Store: store, kind: kind}
}

var (
	_ rest.StandardStorage      = &Store{}
	_ rest.SingularNameProvider = &Store{}
	_ rest.TableConvertor       = &Store{}
	_ rest.ResetFieldsStrategy  = &Store{}
)

// Update changes an object, or creates the one of an applier.
func (s *Store) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.Store.Update(ctx, name, Metadata(objInfo, s.kind), createValidation, updateValidation, forceAllowCreate, options)
}
