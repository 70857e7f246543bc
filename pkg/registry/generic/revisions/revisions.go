// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revisions describes how storages read the history of an object, which controllers keep as ControllerRevisions
// in the main cluster.
package revisions

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxObjects is the highest number of ControllerRevisions with one label that are read.
	MaxObjects = 500
	// MaxBytes is the highest size of what they hold together.
	MaxBytes = 16 << 20
)

// Reader reads ControllerRevisions of the main cluster.
type Reader interface {
	// List returns the ControllerRevisions of the namespace whose label has the value, in any order. It returns an error when there are more
	// than MaxObjects, or when they hold more than MaxBytes.
	List(ctx context.Context, namespace, label, value string) ([]appsv1.ControllerRevision, error)
}

// Of returns those that the object of the UID controls.
func Of(all []appsv1.ControllerRevision, owner types.UID) []*appsv1.ControllerRevision {
	var own []*appsv1.ControllerRevision
	for i := range all {
		if ref := metav1.GetControllerOfNoCopy(&all[i]); ref != nil && ref.UID == owner {
			own = append(own, &all[i])
		}
	}
	return own
}
