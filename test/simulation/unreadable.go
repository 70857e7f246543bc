// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"reflect"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// RuleUnreadable is the rule of every kind about objects in the store that their server cannot read.
const RuleUnreadable = "nothing is written because of an object that cannot be read"

// Placeholder returns what a server shows of an object that it cannot read: its metadata with a mark, and nothing of its spec and its status.
func Placeholder[T Object](object T) T {
	placeholder := reflect.New(reflect.TypeOf(object).Elem()).Interface().(T)
	placeholder.SetName(object.GetName())
	placeholder.SetNamespace(object.GetNamespace())
	placeholder.SetUID(object.GetUID())
	placeholder.SetCreationTimestamp(object.GetCreationTimestamp())
	placeholder.SetLabels(maps.Clone(object.GetLabels()))
	placeholder.SetOwnerReferences(object.GetOwnerReferences())
	annotations := map[string]string{unreadable.Annotation: "its bytes are damaged"}
	maps.Copy(annotations, object.GetAnnotations())
	placeholder.SetAnnotations(annotations)
	return placeholder
}

// Believed returns an object as a controller sees it that does not know placeholders, which is a defect.
func Believed[T Object](object T) T {
	object = copied(object)
	annotations := object.GetAnnotations()
	delete(annotations, unreadable.Annotation)
	object.SetAnnotations(annotations)
	return object
}
