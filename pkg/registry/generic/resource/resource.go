// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource makes the storage of a resource that stores objects, and of their status.
package resource

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// Strategy is the strategy of the main resource.
type Strategy interface {
	rest.RESTCreateUpdateStrategy
	rest.RESTDeleteStrategy
	rest.ResetFieldsStrategy
}

// Resource describes the resource of a kind.
type Resource struct {
	// Kind names the kind. The resource has its name in lower case, with an s.
	Kind schema.GroupKind
	// ShortNames and Categories are other names by which kubectl finds the resource.
	ShortNames, Categories []string
	// New and NewList return an empty object, and an empty list.
	New, NewList func() runtime.Object
	// Strategy is for the main resource, and Status for the status.
	Strategy Strategy
	Status   StatusStrategy
	// Table prints objects.
	Table rest.TableConvertor
	// Attributes, if it is set, returns the labels and fields that lists and watches can select by. Without it, they can select by the
	// name and the namespace.
	Attributes storage.AttrFunc
}

// Serve returns the storage of the resource and of its status by name, and the store below both, for other subresources.
func (r *Resource) Serve(host provider.Host) (map[string]rest.Storage, *registry.Store, error) {
	singular := strings.ToLower(r.Kind.Kind)
	name := singular + "s"
	store := &registry.Store{
		NewFunc:                   r.New,
		NewListFunc:               r.NewList,
		DefaultQualifiedResource:  schema.GroupResource{Group: r.Kind.Group, Resource: name},
		SingularQualifiedResource: schema.GroupResource{Group: r.Kind.Group, Resource: singular},
		CreateStrategy:            bounds.CreateStrategy{RESTCreateStrategy: r.Strategy},
		UpdateStrategy:            bounds.UpdateStrategy{RESTUpdateStrategy: r.Strategy},
		DeleteStrategy:            r.Strategy,
		ResetFieldsStrategy:       r.Strategy,
		TableConvertor:            r.Table,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: host.Getter, AttrFunc: r.Attributes}); err != nil {
		return nil, nil, fmt.Errorf("completing the store of %s: %w", name, err)
	}
	if host.Neighbors != nil {
		host.Neighbors[store.DefaultQualifiedResource] = store.Get
	}
	return map[string]rest.Storage{
		name:             bounds.NewStore(store, r.Kind, r.ShortNames...).InCategories(r.Categories...),
		name + "/status": newStatus(store, r.Kind, r.Status),
	}, store, nil
}

// Attributes returns the labels and fields that lists and watches can select by: the name, the namespace, and the fields of the function.
func Attributes[P runtime.Object](selectable func(P) fields.Set) storage.AttrFunc {
	return func(obj runtime.Object) (labels.Set, fields.Set, error) {
		typed, ok := obj.(P)
		if !ok {
			return nil, nil, fmt.Errorf("selecting objects by their fields: got a %T, not a %T", obj, typed)
		}
		label, field, err := storage.DefaultNamespaceScopedAttr(obj)
		if err == nil {
			maps.Copy(field, selectable(typed))
		}
		return label, field, err
	}
}
