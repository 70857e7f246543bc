// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// ForgetStore makes the main cluster one in which no store was served, as it is after the manifests were applied for the first time.
func ForgetStore(ctx context.Context, client kubernetes.Interface) error {
	maps := client.CoreV1().ConfigMaps(witness.Namespace)
	for _, name := range []string{witness.Name, witness.LostOwnersName} {
		_, err := maps.Patch(ctx, name, types.MergePatchType, []byte(`{"data":null,"binaryData":null}`), metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
