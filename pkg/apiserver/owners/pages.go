// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

const (
	// pageSize is how many objects are read at once.
	pageSize = 500
	// maxStarts is how often a list is started. One that expires in the middle starts again.
	maxStarts = 5
)

// EachPage reads the metadata of all objects of a resource and visits them page by page. It calls begin before the first page, and again
// when the list has expired in the middle and starts from the beginning.
func EachPage(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, begin func(),
	visit func([]metav1.PartialObjectMetadata)) error {
	for start := 1; ; start++ {
		begin()
		err := list(ctx, client, resource, visit)
		if err == nil {
			return nil
		}
		if !apierrors.IsResourceExpired(err) || start == maxStarts {
			return fmt.Errorf("listing the %s of the main cluster: %w", resource.Resource, err)
		}
	}
}

func list(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource,
	visit func([]metav1.PartialObjectMetadata)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := client.Resource(resource).List(ctx, options)
		if err != nil {
			return err
		}
		visit(list.Items)
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
