// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
)

// podGroups is a client of PodGroups in one namespace.
type podGroups struct{ dynamic.ResourceInterface }

var _ children.Client[*unstructured.Unstructured] = podGroups{}

// Create implements children.Client.
func (c podGroups) Create(ctx context.Context, group *unstructured.Unstructured, options metav1.CreateOptions) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Create(ctx, group, options)
}

// Get implements children.Client.
func (c podGroups) Get(ctx context.Context, name string, options metav1.GetOptions) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Get(ctx, name, options)
}

// Delete implements children.Client.
func (c podGroups) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.ResourceInterface.Delete(ctx, name, options)
}

// Patch implements children.Client.
func (c podGroups) Patch(
	ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Patch(ctx, name, kind, data, options, subresources...)
}
