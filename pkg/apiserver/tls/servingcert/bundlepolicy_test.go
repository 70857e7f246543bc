// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"os"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/test/policies"
)

// forbiddenChanges are changes of a webhook configuration that the server has no reason for.
var forbiddenChanges = map[string]func(c *admissionregistrationv1.MutatingWebhookConfiguration){
	"label": func(c *admissionregistrationv1.MutatingWebhookConfiguration) { c.Labels = map[string]string{"a": "b"} },
	"annotation": func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
		c.Annotations = map[string]string{"a": "b"}
	},
	"finalizer": func(c *admissionregistrationv1.MutatingWebhookConfiguration) { c.Finalizers = []string{"a/b"} },
	"owner": func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "a", UID: "1"}}
	},
	"no webhook": func(c *admissionregistrationv1.MutatingWebhookConfiguration) { c.Webhooks = nil },
	"another webhook": func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
		another := c.Webhooks[0]
		another.Name = "another.kb.io"
		c.Webhooks = append(c.Webhooks, another)
	},
	"name":    onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.Name = "other.kb.io" }),
	"Service": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Name = "other" }),
	"path":    onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Path = ptr.To("/other") }),
	"URL": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) {
		w.ClientConfig.Service, w.ClientConfig.URL = nil, ptr.To("https://example.com/")
	}),
	"resources": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.Rules[0].Resources = []string{"pods", "secrets"} }),
	"another rule": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) {
		w.Rules = append(w.Rules, w.Rules[0])
		w.Rules[1].Resources = []string{"secrets"}
	}),
	"pods without the label": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.ObjectSelector = nil }),
	"namespaces": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) {
		w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}),
	"condition": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) {
		w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "false"}}
	}),
	"failure policy": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) {
		w.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	}),
	"match policy": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) {
		w.MatchPolicy = ptr.To(admissionregistrationv1.Exact)
	}),
	"reinvocation policy": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.ReinvocationPolicy = nil }),
	"side effects": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) {
		w.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun)
	}),
	"timeout": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.TimeoutSeconds = ptr.To[int32](1) }),
	"versions": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) {
		w.AdmissionReviewVersions = []string{"v1", "v1beta1"}
	}),
}

func onWebhook(change func(*admissionregistrationv1.MutatingWebhook)) func(*admissionregistrationv1.MutatingWebhookConfiguration) {
	return func(c *admissionregistrationv1.MutatingWebhookConfiguration) { change(&c.Webhooks[0]) }
}

// TestServerMayChangeOnlyBundles evaluates the policy for changes that the server makes, and for those of whoever has its token.
func TestServerMayChangeOnlyBundles(t *testing.T) {
	policy := policies.Read(t, "../../../../artifacts/base/rbac/ca-bundles.yaml")
	stored := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if content, err := os.ReadFile("../../../../artifacts/base/webhook.yaml"); err != nil || yaml.Unmarshal(content, stored) != nil {
		t.Fatal("the webhook cannot be read", err)
	}
	const server = "system:serviceaccount:jobset-system:jobset-apiserver"
	if !allows(t, policy, server, stored, onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.CABundle = []byte("a") })) {
		t.Error("the server may not write caBundle")
	}
	for name, change := range forbiddenChanges {
		if allows(t, policy, server, stored, change) {
			t.Errorf("the server may change: %s", name)
		}
		if !allows(t, policy, "admin", stored, change) {
			t.Errorf("an administrator may not change: %s", name)
		}
	}
}

// allows returns whether the policy allows a change.
func allows(t *testing.T, policy *policies.Policy, name string, stored *admissionregistrationv1.MutatingWebhookConfiguration,
	change func(*admissionregistrationv1.MutatingWebhookConfiguration)) bool {
	t.Helper()
	changed := stored.DeepCopy()
	change(changed)
	kind := admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
	attributes := admission.NewAttributesRecord(changed, stored, kind, "", stored.Name, pods.Resource, "", admission.Update, &metav1.UpdateOptions{}, false,
		&user.DefaultInfo{Name: name})
	return policy.Refuses(t, attributes) == ""
}
