// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// OwnedAsCreated returns whether fields of a StatefulSet belong to its creation by the controller. A server-side apply by the same manager
// removes no such field, so that they have to become fields of applies first.
func OwnedAsCreated(sts *appsv1.StatefulSet) bool {
	return sts != nil && slices.ContainsFunc(sts.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == leaderworkersetv1.FieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
	})
}

// KeepOwnership drops what OwnedAsCreated does not use of the field managers of a StatefulSet.
func KeepOwnership(sts *appsv1.StatefulSet) {
	if !OwnedAsCreated(sts) {
		sts.ManagedFields = nil
		return
	}
	sts.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: leaderworkersetv1.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate,
	}}
}
