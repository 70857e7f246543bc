// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// forbiddenChanges are changes of a webhook configuration that the server has no reason for.
var forbiddenChanges = map[string]func(c *admissionregistrationv1.MutatingWebhookConfiguration){
	"label":      func(c *admissionregistrationv1.MutatingWebhookConfiguration) { c.Labels = map[string]string{"a": "b"} },
	"annotation": func(c *admissionregistrationv1.MutatingWebhookConfiguration) { c.Annotations = map[string]string{"a": "b"} },
	"finalizer":  func(c *admissionregistrationv1.MutatingWebhookConfiguration) { c.Finalizers = []string{"a/b"} },
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
	"match policy":        onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.MatchPolicy = ptr.To(admissionregistrationv1.Exact) }),
	"reinvocation policy": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.ReinvocationPolicy = nil }),
	"side effects": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) {
		w.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun)
	}),
	"timeout":  onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.TimeoutSeconds = ptr.To[int32](1) }),
	"versions": onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.AdmissionReviewVersions = []string{"v1", "v1beta1"} }),
}

func onWebhook(change func(*admissionregistrationv1.MutatingWebhook)) func(*admissionregistrationv1.MutatingWebhookConfiguration) {
	return func(c *admissionregistrationv1.MutatingWebhookConfiguration) { change(&c.Webhooks[0]) }
}

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
	try := func(ctx context.Context, change func(*admissionregistrationv1.MutatingWebhookConfiguration)) error {
		changed := created.DeepCopy()
		change(changed)
		_, err := server.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(ctx, changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	framework.Eventually(t, "the policy is in force", func(ctx context.Context) error {
		if try(ctx, forbiddenChanges["Service"]) == nil {
			return errors.New("the Service can be changed")
		}
		return nil
	})
	if err := try(t.Context(), onWebhook(func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.CABundle = plane.FrontProxy.CA() })); err != nil {
		t.Errorf("caBundle: %v", err)
	}
	for name, change := range forbiddenChanges {
		err := try(t.Context(), change)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'jobset-apiserver-ca-bundles'") ||
			!strings.Contains(err.Error(), "denied request: jobset-apiserver may change") {
			t.Errorf("%s: %v", name, err)
		}
	}
	admin := created.DeepCopy()
	forbiddenChanges["failure policy"](admin)
	if _, err := webhooks.Update(t.Context(), admin, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("an administrator is refused: %v", err)
	}
}
