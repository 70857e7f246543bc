// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// Namespace returns a name for a namespace of the test that no other run has.
func Namespace(t *testing.T) string {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if len(name) > 40 {
		name = name[:40]
	}
	return fmt.Sprintf("%s-%d", strings.Trim(name, "-"), time.Now().UnixNano()%100000)
}

// CreateNamespace makes a namespace. Nearly every test needs one, so no program is started for it.
func CreateNamespace(t testing.TB, kubeconfig, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := clientOf(t, kubeconfig).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// DeleteNamespace begins to delete a namespace, unless it is gone, and does not wait for the end.
func DeleteNamespace(t testing.TB, kubeconfig, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := clientOf(t, kubeconfig).CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Logf("deleting namespace %s: %v", name, err)
	}
}

// AwaitServiceAccount waits for the service account of a namespace, without which kube-apiserver admits no pod.
func AwaitServiceAccount(t testing.TB, kubeconfig, namespace string) {
	t.Helper()
	accounts := clientOf(t, kubeconfig).CoreV1().ServiceAccounts(namespace)
	framework.Eventually(t, "the namespace has its service account", func(ctx context.Context) error {
		_, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func clientOf(t testing.TB, kubeconfig string) kubernetes.Interface {
	t.Helper()
	g, err := getterOf(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(g.config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
