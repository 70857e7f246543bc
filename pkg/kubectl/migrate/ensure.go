// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

type (
	kubernetesClient = kubernetes.Interface
	resourceQuota    = corev1.ResourceQuota
	runtimeObject    = runtime.Object
)

// object is a pointer to a type of an API.
type object interface {
	metav1.Object
	runtime.Object
}

// typed is a client of a resource.
type typed[T object] interface {
	Create(ctx context.Context, object T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, opts metav1.UpdateOptions) (T, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
}

// ensure creates an object, or changes the one that exists; without a change, that one stays as it is.
func ensure[T object](ctx context.Context, client typed[T], wanted T, change func(T)) (result T, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		result, err = client.Create(ctx, wanted, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if result, err = client.Get(ctx, wanted.GetName(), metav1.GetOptions{}); err != nil || change == nil {
			return err
		}
		before := result.DeepCopyObject()
		if change(result); equality.Semantic.DeepEqual(before, result) {
			return nil
		}
		result, err = client.Update(ctx, result, metav1.UpdateOptions{})
		return err
	})
	return result, err
}
