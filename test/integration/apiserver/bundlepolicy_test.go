// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// TestServerChangesOnlyBundles changes the webhook as the server, whose permission is for the whole object.
func TestServerChangesOnlyBundles(t *testing.T) {
	webhooks := plane.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	created, err := webhooks.Create(t.Context(), apiservice.Webhook(443, nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := webhooks.Delete(context.WithoutCancel(t.Context()), created.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", plane.ServerKubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	server, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	// Nothing is stored, so that one configuration serves all cases.
	toOther := func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
		c.Webhooks[0].ClientConfig.Service.Name = "other"
	}
	withBundle := func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
		c.Webhooks[0].ClientConfig.CABundle = plane.FrontProxy.CA()
	}
	try := func(ctx context.Context, change func(*admissionregistrationv1.MutatingWebhookConfiguration)) error {
		changed := created.DeepCopy()
		change(changed)
		_, err := server.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(ctx, changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	framework.Eventually(t, "the policy is in force", func(ctx context.Context) error {
		const want = "denied request: jobset-apiserver may change only clientConfig.caBundle of a webhook"
		if err := try(ctx, toOther); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("another Service: %w", err)
		}
		return nil
	})
	if err := try(t.Context(), withBundle); err != nil {
		t.Errorf("caBundle: %v", err)
	}
	admin := created.DeepCopy()
	toOther(admin)
	if _, err := webhooks.Update(t.Context(), admin, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("an administrator is refused: %v", err)
	}
}
