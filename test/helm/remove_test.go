// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// removeEverything uninstalls what is installed, with the sets and the store, as docs/helm.md and docs/installation.md describe. The claims go with
// the namespace, and their volumes with them.
func removeEverything(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "the sets are deleted", func(ctx context.Context) error {
		err := jobsets.JobsetV1alpha2().JobSets("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		jobs, err := core.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		if err != nil || len(jobs.Items) > 0 {
			return fmt.Errorf("%d Jobs are left (%v)", len(jobs.Items), err)
		}
		return nil
	})
	if out, err := helm(t, "uninstall", "jobset", "--ignore-not-found", "--wait"); err != nil {
		t.Fatalf("helm uninstall: %v\n%s", err, out)
	}
	removeManifests(t)
	err := core.CoreV1().Namespaces().Delete(t.Context(), apiservice.Namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	for _, name := range []string{"jobset-apiserver-store", "jobset-apiserver-lost-owners"} {
		err := core.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(t.Context(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	framework.Eventually(t, "the namespace is deleted", func(ctx context.Context) error {
		_, err := core.CoreV1().Namespaces().Get(ctx, apiservice.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%v)", err)
	})
}

// removeManifests deletes what kubectl has installed: first what makes kube-apiserver forward requests, because without a server this would
// keep every namespace from being deleted.
func removeManifests(t *testing.T) {
	t.Helper()
	services := []string{"delete", "--ignore-not-found", "apiservice"}
	for _, group := range apiservice.Groups {
		services = append(services, apiservice.Name(group))
	}
	kubectl(t, services...)
	kubectl(t, "delete", "--ignore-not-found", "mutatingwebhookconfiguration", "jobset-apiserver-pods")
	kubectl(t, "delete", "--ignore-not-found", "-k", filepath.Join(shared.Root, "artifacts", "overlays", "embedded-ha"))
}
