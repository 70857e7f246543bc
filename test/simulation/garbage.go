// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deleter is a Resource of any type, as the garbage collector sees it.
type deleter interface {
	names() []string
	get(name string) metav1.Object
	drop(name string)
	disown(name string, owner types.UID)
	endFinalizer(name, finalizer string)
}

func (r *Resource[T]) names() (all []string) {
	for _, object := range r.Objects {
		all = append(all, object.GetName())
	}
	return all
}

func (r *Resource[T]) get(name string) metav1.Object {
	if object, found := r.Store.Get(name); found {
		return object
	}
	return nil
}

func (r *Resource[T]) drop(name string) {
	object, _ := r.Store.Get(name)
	r.Delete(object, metav1.DeletePropagationBackground)
}

func (r *Resource[T]) disown(name string, owner types.UID) {
	object, _ := r.Store.Get(name)
	r.Change(object, func(next T) {
		next.SetOwnerReferences(slices.DeleteFunc(next.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner }))
	})
}

func (r *Resource[T]) endFinalizer(name, finalizer string) {
	object, _ := r.Store.Get(name)
	object = r.Change(object, func(next T) {
		next.SetFinalizers(slices.DeleteFunc(next.GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
	r.EndIfDeleted(object)
}

// EndIfDeleted removes an object that is being deleted, unless something still holds it.
func (r *Resource[T]) EndIfDeleted(object T) {
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 && (r.Stays == nil || !r.Stays(object)) {
		r.Remove(object.GetName())
	}
}

// CollectGarbage lets the garbage collector have a turn: what has no owner any more is deleted, owners that wait for
// their dependents go once these have gone, and dependents that are to be left are. It reports whether anything was
// done.
func (w *World) CollectGarbage() (busy bool) {
	owners := map[types.UID]metav1.Object{}
	w.each(func(_ deleter, object metav1.Object) { owners[object.GetUID()] = object })
	waits := map[types.UID]bool{}
	w.each(func(of deleter, object metav1.Object) {
		gone := len(object.GetOwnerReferences()) > 0
		for _, ref := range object.GetOwnerReferences() {
			owner := owners[ref.UID]
			switch {
			case owner == nil:
			case slices.Contains(owner.GetFinalizers(), metav1.FinalizerOrphanDependents):
				of.disown(object.GetName(), ref.UID)
				busy, gone = true, false
			case slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents):
				waits[ref.UID] = true
			default:
				gone = false
			}
		}
		if gone && object.GetDeletionTimestamp() == nil {
			of.drop(object.GetName())
			busy = true
		}
	})
	w.each(func(of deleter, object metav1.Object) {
		for _, finalizer := range []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
			if slices.Contains(object.GetFinalizers(), finalizer) && !waits[object.GetUID()] {
				of.endFinalizer(object.GetName(), finalizer)
				busy = true
			}
		}
	})
	return busy
}

// each calls f for each object of the world that is still there.
func (w *World) each(f func(of deleter, object metav1.Object)) {
	for _, of := range w.stores {
		for _, name := range of.names() {
			if object := of.get(name); object != nil {
				f(of, object)
			}
		}
	}
}
