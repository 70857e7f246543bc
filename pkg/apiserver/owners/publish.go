// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// maxWrites is how often a list is written when others write too.
const maxWrites = 5

// Publish writes the list of lost owners to the main cluster, for `store release-orphans`. It does not write a list that is there.
func Publish(ctx context.Context, client corev1client.ConfigMapsGetter, list witness.LostOwners) error {
	var err error
	for range maxWrites {
		if err = publish(ctx, client.ConfigMaps(witness.Namespace), list); err == nil || !apierrors.IsConflict(err) &&
			!apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("writing the list of lost owners to ConfigMap %s/%s: %w", witness.Namespace, witness.LostOwnersName, err)
	}
	return nil
}

func publish(ctx context.Context, client corev1client.ConfigMapInterface, list witness.LostOwners) error {
	stored, err := client.Get(ctx, witness.LostOwnersName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.LostOwnersName}}
		list.Write(created)
		_, err = client.Create(ctx, created, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	next := stored.DeepCopy()
	list.Write(next)
	if equality.Semantic.DeepEqual(stored, next) {
		return nil
	}
	_, err = client.Update(ctx, next, metav1.UpdateOptions{})
	return err
}
