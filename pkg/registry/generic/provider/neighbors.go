// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Read reads an object by its name, in the namespace of the context.
type Read func(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)

// Neighbors let the storage of a kind read objects of all kinds that the server has, by name and from its cache. They are complete before
// the server runs.
type Neighbors map[schema.GroupResource]Read

// Find returns an object as the cache of the server has it; nil if there is none, if it is being deleted, or if it cannot be read.
func (n Neighbors) Find(ctx context.Context, resource schema.GroupResource, name string) metav1.Object {
	read := n[resource]
	if read == nil {
		return nil
	}
	obj, err := read(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	if object, ok := obj.(metav1.Object); ok && object.GetDeletionTimestamp() == nil {
		return object
	}
	return nil
}
