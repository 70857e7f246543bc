// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listPage is how many objects are read at once.
const listPage = 500

// All calls a function for each object of a kind, shared and read-only. It begins no watch: while there is none, because no set asks for
// groups, it lists them, of which there are few. There are none if the cluster serves no version, or if the controller may not list them.
func (w *Watch) All(ctx context.Context, kind Kind, fn func(metav1.Object)) error {
	if v := w.objects.Current(); v != nil {
		for _, obj := range v.informers[slices.Index(w.Kinds, kind)].List() {
			if object, ok := obj.(metav1.Object); ok {
				fn(object)
			}
		}
		return nil
	}
	for _, version := range w.Versions {
		err := w.list(ctx, version.WithResource(kind.Resource), fn)
		switch {
		case err == nil, apierrors.IsForbidden(err):
			return nil
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
	}
	return nil
}

func (w *Watch) list(ctx context.Context, resource schema.GroupVersionResource, fn func(metav1.Object)) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	options := metav1.ListOptions{LabelSelector: w.Label, Limit: listPage}
	for {
		list, err := w.Dynamic.Resource(resource).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			fn(&list.Items[i])
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
