// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxRevisions is the highest number of ControllerRevisions with one label that are read.
	MaxRevisions = 500
	// MaxRevisionBytes is the highest size of what they hold together.
	MaxRevisionBytes = 16 << 20
)

// RevisionReader reads the history of an object, which controllers keep as ControllerRevisions in the main cluster.
type RevisionReader interface {
	// List returns the ControllerRevisions of the namespace whose label has the value, in any order. It returns an error when there are more
	// than MaxRevisions, or when they hold more than MaxRevisionBytes.
	List(ctx context.Context, namespace, label, value string) ([]appsv1.ControllerRevision, error)
}

// OwnRevisions returns the revisions that the object of the UID controls.
func OwnRevisions(all []appsv1.ControllerRevision, owner types.UID) []*appsv1.ControllerRevision {
	var own []*appsv1.ControllerRevision
	for i := range all {
		if ref := metav1.GetControllerOfNoCopy(&all[i]); ref != nil && ref.UID == owner {
			own = append(own, &all[i])
		}
	}
	return own
}
