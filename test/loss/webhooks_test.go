// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deleteWebhooks deletes the webhook configurations that upstream leaves.
func (o *takeover) deleteWebhooks(t *testing.T) {
	t.Helper()
	left := []string{"jobset-validating-webhook-configuration", "lws-validating-webhook-configuration"}
	webhooks := o.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	for _, name := range left {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := webhooks.Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []string{"jobset", "lws"} {
		o.do(t, "kubectl delete --ignore-not-found mutatingwebhookconfiguration/"+of+"-mutating-webhook-configuration")
	}
	for _, name := range left {
		if _, err := webhooks.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}
