// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history reads the ControllerRevisions of the main cluster, to which users roll objects back.
package history

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// pageSize is how many are read at a time: what an object can hold is bounded by the main cluster, so this bounds a page.
const pageSize = 10

// Reader implements provider.RevisionReader.
type Reader struct {
	// Client reaches the main cluster.
	Client typedappsv1.ControllerRevisionsGetter
}

var _ provider.RevisionReader = Reader{}

// List implements provider.RevisionReader. It stops at the first page that is too much.
func (r Reader) List(ctx context.Context, namespace, label, value string) ([]appsv1.ControllerRevision, error) {
	options := metav1.ListOptions{LabelSelector: labels.Set{label: value}.String(), Limit: pageSize}
	var all []appsv1.ControllerRevision
	size := 0
	for {
		page, err := r.Client.ControllerRevisions(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			item.ManagedFields = nil
			size += len(item.Data.Raw)
			all = append(all, *item)
		}
		if len(all) > provider.MaxRevisions || size > provider.MaxRevisionBytes {
			return nil, fmt.Errorf("namespace %s has more than %d ControllerRevisions with the label %s=%s, or they hold more than %d MiB: "+
				"delete those that are not needed",
				namespace, provider.MaxRevisions, label, value, provider.MaxRevisionBytes>>20)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}
