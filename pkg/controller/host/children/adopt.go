// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LiveOwnerClient is a client of owners that adopt children, in one namespace.
type LiveOwnerClient[T metav1.Object] interface {
	OwnerClient[T]
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
}

// Lives reads an owner from the API, and returns whether this very incarnation exists and is not being deleted. Caches
// may show one that is gone: the garbage collector would delete what it adopts.
func Lives[T metav1.Object](ctx context.Context, client LiveOwnerClient[T], owner T) (bool, error) {
	live, err := client.Get(ctx, owner.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return live.GetUID() == owner.GetUID() && live.GetDeletionTimestamp() == nil, nil
}

// theController is what another party may remove from a child that was adopted.
const theController = "the controller reference"

func orphaned(ref Ref) metav1.Object { return &metav1.ObjectMeta{Name: ref.Name, UID: ref.UID} }

// MayAdopt returns why the API is not asked now to adopt a child: an UndoneError, or a denial whose time has not come.
func (w *Writer[T]) MayAdopt(owner metav1.Object, ref Ref) error {
	return cmp.Or(w.guard.Changing(owner, orphaned(ref), theController), w.denials.Waits(owner, w.change(Ref{Name: ref.Name}, "")))
}

// Adopt adds a controller to the owners of a child as it is stored now, in the namespace of owner, in whose name the
// request is made. It returns false if the child is gone or no orphan any more: the watch is about to show that. The error may be an
// UndoneError, or a denial whose time has not come; then the API is not asked.
func (w *Writer[T]) Adopt(ctx context.Context, owner metav1.Object, ref Ref, controller metav1.OwnerReference,
	orphan func(child T) bool) (bool, error) {
	const path = "/metadata/ownerReferences"
	if err := w.MayAdopt(owner, ref); err != nil {
		return false, fmt.Errorf("adopting %s %s/%s: %w", w.noun, owner.GetNamespace(), ref.Name, err)
	}
	child, err := w.Get(ctx, owner.GetNamespace(), ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s %s/%s: %w", w.noun, owner.GetNamespace(), ref.Name, err)
	case child.GetUID() != ref.UID || !orphan(child):
		return false, nil
	}
	owners := append(slices.Clone(child.GetOwnerReferences()), controller)
	version, err := w.patch(ctx, owner, ref.Name, child.GetResourceVersion(), []Operation{Set(path, owners)})
	if version != "" {
		w.guard.Changed(owner, orphaned(ref), theController)
	}
	return version != "", err
}
