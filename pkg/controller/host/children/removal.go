// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// This file bounds deletions of children that another party creates again each time. Children which another controller of the cluster
// creates again by design, such as the pods of a StatefulSet, are deleted by Writer.Deleting.

// Removing returns an UndoneError while a child is not to be deleted, because another party has created it again each time.
func (g *Guard) Removing(owner, child metav1.Object) error {
	return g.check(removalOf(child), generationOf(owner), func(next string) string {
		return fmt.Sprintf("%s %s was created again %d times within a minute, each time after the controller had deleted it; the API "+
			"does not say who creates it, the audit log does; the controller deletes it again at %s", g.noun, child.GetName(), maxReversals, next)
	})
}

// Removed notes that a child was deleted. One that the controller itself has created since its name was last deleted is no reversal, and
// neither is another request for the same incarnation.
func (g *Guard) Removed(owner, child metav1.Object) {
	key := removalOf(child)
	was, found := g.known(key, generationOf(owner))
	switch {
	case found && was.incarnation == child.GetUID():
		return
	case found:
		was = was.again(g.clock.Now())
	}
	was.incarnation = child.GetUID()
	g.note(key, was)
}

// removalOf returns what a deletion is remembered by.
func removalOf(child metav1.Object) write {
	return write{child: cache.MetaObjectToName(child), what: "removal"}
}

// Removing makes a request that deletes a child, unless it was denied and its time has not come, or another party creates the child again
// each time. Then the error is an UndoneError.
func (w *Writer[T]) Removing(owner metav1.Object, ref Ref, do func() error) error {
	child := &metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: ref.Name, UID: ref.UID}
	if err := w.guard.Removing(owner, child); err != nil {
		return err
	}
	err := w.Deleting(owner, ref, do)
	if err == nil {
		w.guard.Removed(owner, child)
	}
	return err
}
