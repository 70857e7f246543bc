// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Unread stands for the UID of an object in the store whose UID cannot be read.
func Unread(namespace, name string) types.UID {
	return types.UID("unreadable:" + namespace + "/" + name)
}

// unread returns whether an owner of ours may be an object whose UID cannot be read. Unknown is not lost. The garbage
// collector keeps an object as long as it has one owner that exists, so that any owner counts.
func (c *Checker) unread(object *metav1.PartialObjectMetadata, known sets.Set[types.UID]) bool {
	return slices.ContainsFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return c.ours(&owner) != "" && known.Has(Unread(object.Namespace, owner.Name))
	})
}
