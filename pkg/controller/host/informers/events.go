// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

// FailedCreations are the events of the main API about objects whose pods were not created.
func (f *Factory) FailedCreations() Resource {
	return NewResource(f.main, corev1.SchemeGroupVersion.WithResource("events"), &corev1.Event{}, f.kube,
		selected[*corev1.EventList]{f.kube.CoreV1().Events(metav1.NamespaceAll),
			fields.OneTermEqualSelector("reason", reasons.FailedCreate).String()})
}

// selected follows the objects whose fields match a selector.
type selected[L any] struct {
	all interface {
		List(context.Context, metav1.ListOptions) (L, error)
		Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	}
	fields string
}

// List implements Client.
func (s selected[L]) List(ctx context.Context, options metav1.ListOptions) (L, error) {
	options.FieldSelector = s.fields
	return s.all.List(ctx, options)
}

// Watch implements Client.
func (s selected[L]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = s.fields
	return s.all.Watch(ctx, options)
}
