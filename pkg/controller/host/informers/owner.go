// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OwnerOf returns the reference to the object of the kind that controls another one; nil if none does.
func OwnerOf(obj metav1.Object, kind schema.GroupVersionKind) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || owner.Kind != kind.Kind || owner.APIVersion != kind.GroupVersion().String() {
		return nil
	}
	return owner
}
