// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Unread stands for the UID of an object in the store whose UID cannot be read.
func Unread(namespace, name string) types.UID {
	return types.UID("unreadable:" + namespace + "/" + name)
}

// unread returns whether the controller of an object may be one whose UID cannot be read. Unknown is not lost.
func unread(object *metav1.PartialObjectMetadata, known sets.Set[types.UID]) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && known.Has(Unread(object.Namespace, owner.Name))
}
