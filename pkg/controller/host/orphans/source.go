// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Source is a kind of children.
type Source struct {
	Kind schema.GroupVersionKind
	// Children returns the children with an owner of the kind of the Watcher that are not being deleted. It returns an error if they are not
	// known.
	Children func(context.Context) (iter.Seq[Child], error)
}

// Cached returns the source of what a cache lists. An object for which of returns false is no child.
func Cached(kind schema.GroupVersionKind, list func() []any, of func(obj any) (Child, bool)) Source {
	return Source{Kind: kind, Children: func(context.Context) (iter.Seq[Child], error) {
		return func(yield func(Child) bool) {
			for _, obj := range list() {
				if child, ok := of(obj); ok && !yield(child) {
					return
				}
			}
		}, nil
	}}
}

// Owned returns a function for Cached, for caches that keep the metadata of objects. The function ownerOf returns the reference to the
// owner; nil if there is none.
func Owned(ownerOf func(metav1.Object) *metav1.OwnerReference) func(obj any) (Child, bool) {
	return func(obj any) (Child, bool) {
		child, ok := obj.(metav1.Object)
		if !ok || child.GetDeletionTimestamp() != nil {
			return Child{}, false
		}
		owner := ownerOf(child)
		if owner == nil {
			return Child{}, false
		}
		return Child{Name: child.GetName(), UID: child.GetUID(), Owner: Owner{Namespace: child.GetNamespace(), Name: owner.Name,
			UID: owner.UID}}, true
	}
}
