// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// defaultClass is a patch of a storage class that says whether it is the default one.
const defaultClass = `{"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "%t"}}}`

// provisionClaims makes the class that makes volumes the default one, as in a cluster of users. The cluster comes with one volume, which is kept for the
// claim of the first server and never emptied.
func provisionClaims(ctx context.Context) error {
	for class, is := range map[string]bool{"none": false, localcluster.SharedStorageClass: true} {
		patch := fmt.Appendf(nil, defaultClass, is)
		if _, err := core.StorageV1().StorageClasses().Patch(ctx, class, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	err := core.CoreV1().PersistentVolumes().Delete(ctx, "store", metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
