// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// TestWebhookIsThatOfTheManifest keeps tests and local clusters from working with another configuration than
// installations, and the manifest from naming what the server does not serve.
func TestWebhookIsThatOfTheManifest(t *testing.T) {
	data, err := os.ReadFile("../../artifacts/base/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(data, &manifest); err != nil {
		t.Fatal(err)
	}
	own := apiservice.Webhook(443, nil)
	own.Labels = manifest.Labels
	if diff := cmp.Diff(own, &manifest); diff != "" {
		t.Errorf("Webhook (-) differs from artifacts/base/webhook.yaml (+):\n%s", diff)
	}
	webhook := manifest.Webhooks[0]
	if got := *webhook.ClientConfig.Service.Path; got != apigroups.PodsPath {
		t.Errorf("the path is %s, must be %s", got, apigroups.PodsPath)
	}
	if got := webhook.ObjectSelector.MatchExpressions[0].Key; got != leaderworkersetv1.SetNameLabelKey {
		t.Errorf("pods are selected by %s, must be by %s", got, leaderworkersetv1.SetNameLabelKey)
	}
}
