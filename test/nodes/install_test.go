// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// registration are the fields of an APIService that the test reads.
type registration struct {
	Spec   struct{ CABundle []byte }
	Status struct {
		Conditions []metav1.Condition
	}
}

// TestInstallationNeedsOneCommand looks at what the cluster was started with: nothing was done after the overlay was applied.
func TestInstallationNeedsOneCommand(t *testing.T) {
	secret, err := core.CoreV1().Secrets(apiservice.Namespace).Get(t.Context(), "jobset-apiserver-serving", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ca.crt", "ca.key", "tls.crt", "tls.key"}, slices.Sorted(maps.Keys(secret.Data))); diff != "" {
		t.Errorf("keys of the Secret (-want +got):\n%s", diff)
	}
	// Certificates of an earlier installation may follow.
	authority := secret.Data["ca.crt"]
	for _, group := range apiservice.Groups {
		content, err := core.CoreV1().RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices", apiservice.Name(group)).Do(t.Context()).Raw()
		if err != nil {
			t.Fatal(err)
		}
		var r registration
		if err := json.Unmarshal(content, &r); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(r.Spec.CABundle, authority) {
			t.Errorf("the caBundle of %s does not begin with the authority of the Secret", apiservice.Name(group))
		}
		for _, condition := range r.Status.Conditions {
			if condition.Type == "Available" && condition.Status == metav1.ConditionTrue {
				t.Logf("%s was available %s after the Secret was applied", apiservice.Name(group), condition.LastTransitionTime.Sub(secret.CreationTimestamp.Time).Round(time.Second))
			}
		}
	}
	webhook, err := core.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), apiservice.WebhookName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(webhook.Webhooks[0].ClientConfig.CABundle, authority) {
		t.Error("the caBundle of the webhook does not begin with the authority of the Secret")
	}
}
