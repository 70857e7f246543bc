// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// leftByUpstream is what an uninstalled upstream leaves behind, changed.
func leftByUpstream(change func(w *admissionregistrationv1.ValidatingWebhook)) runtime.Object {
	w := admissionregistrationv1.ValidatingWebhook{
		Name:          "vjobset.kb.io",
		FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		ClientConfig:  serviceOf("jobset-system", "jobset-webhook-service"),
		Rules:         ruleOf("jobset.x-k8s.io"),
	}
	change(&w)
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "jobset-validating-webhook-configuration"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{w},
	}
}

func serviceOf(namespace, name string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name}}
}

func ruleOf(groups ...string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIGroups: groups}}}
}

// mutating is a configuration with one webhook, which has the default failurePolicy.
func mutating(configuration, webhook, service string, groups ...string) runtime.Object {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configuration},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: webhook, ClientConfig: serviceOf("away", service), Rules: ruleOf(groups...)}},
	}
}

func TestOtherWebhooks(t *testing.T) {
	const none = "no webhook refuses our kinds because its Service is missing"
	same := func(*admissionregistrationv1.ValidatingWebhook) {}
	upstream := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: "jobset-webhook-service"}}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		refused map[string]error
		status  Status
		message string
		fix     string
	}{
		"there are none": {status: OK, message: none},
		"upstream is gone": {
			objects: []runtime.Object{leftByUpstream(same)}, status: Fail,
			message: "ValidatingWebhookConfiguration jobset-validating-webhook-configuration refuses every write of jobset.x-k8s.io: its webhook vjobset.kb.io asks Service " +
				"jobset-system/jobset-webhook-service, which does not exist",
			fix: "kubectl delete validatingwebhookconfiguration/jobset-validating-webhook-configuration",
		},
		"upstream runs": {objects: []runtime.Object{leftByUpstream(same), upstream}, status: OK, message: none},
		"failures are ignored": {objects: []runtime.Object{leftByUpstream(func(w *admissionregistrationv1.ValidatingWebhook) {
			w.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
		})}, status: OK, message: none},
		"other kinds": {objects: []runtime.Object{leftByUpstream(func(w *admissionregistrationv1.ValidatingWebhook) {
			w.Rules = ruleOf("apps")
		})}, status: OK, message: none},
		"a URL": {objects: []runtime.Object{leftByUpstream(func(w *admissionregistrationv1.ValidatingWebhook) {
			w.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://example.com")}
		})}, status: OK, message: none},
		"two configurations, the default failurePolicy": {
			objects: []runtime.Object{
				leftByUpstream(same), mutating("lws-mutating-webhook-configuration", "mleaderworkerset.kb.io", "lws", "apps", "leaderworkerset.x-k8s.io", "disaggregatedset.x-k8s.io"),
			},
			status: Fail,
			message: "MutatingWebhookConfiguration lws-mutating-webhook-configuration refuses every write of leaderworkerset.x-k8s.io and disaggregatedset.x-k8s.io: its webhook " +
				"mleaderworkerset.kb.io asks Service away/lws, which does not exist; ValidatingWebhookConfiguration jobset-validating-webhook-configuration refuses every write of " +
				"jobset.x-k8s.io: its webhook vjobset.kb.io asks Service jobset-system/jobset-webhook-service, which does not exist",
			fix: "kubectl delete mutatingwebhookconfiguration/lws-mutating-webhook-configuration validatingwebhookconfiguration/jobset-validating-webhook-configuration",
		},
		"a webhook for all kinds": {
			objects: []runtime.Object{mutating("policy", "all.example.com", "engine", "*")}, status: Fail,
			message: "MutatingWebhookConfiguration policy refuses every write of all API groups: its webhook all.example.com asks Service away/engine, which does not exist",
			fix:     "kubectl delete mutatingwebhookconfiguration/policy   # unless you install the program behind it again",
		},
		"configurations may not be listed": {
			refused: map[string]error{"validatingwebhookconfigurations": forbidden("validatingwebhookconfigurations")}, status: Warn,
			message: "you have no permission to read webhook configurations; the ClusterRole jobset-doctor grants it",
		},
		"Services may not be read": {
			objects: []runtime.Object{leftByUpstream(same)}, refused: map[string]error{"services": forbidden("services")}, status: Warn,
			message: "you have no permission to read Service jobset-system/jobset-webhook-service; the ClusterRole jobset-doctor grants it",
		},
		"Services cannot be read": {
			objects: []runtime.Object{leftByUpstream(same)}, refused: map[string]error{"services": errors.New("broken")}, status: Fail,
			message: "Service jobset-system/jobset-webhook-service could not be read: broken",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := cluster{objects: tc.objects, refused: tc.refused}.find(t, "other-webhooks")
			if got.status != tc.status || got.message != tc.message || got.fix != tc.fix {
				t.Errorf("%s: %s\nfix: %s\nwant %s: %s\nfix: %s", got.status, got.message, got.fix, tc.status, tc.message, tc.fix)
			}
		})
	}
}

// TestFaultOfWebhooksOfOthers proves that nothing else in the report hides a webhook that upstream has left behind.
func TestFaultOfWebhooksOfOthers(t *testing.T) {
	fault{func(_ *testing.T, i *installation) {
		i.policies = append(i.policies, leftByUpstream(func(*admissionregistrationv1.ValidatingWebhook) {}))
	}, "other-webhooks", Fail, "ValidatingWebhookConfiguration jobset-validating-webhook-configuration", "kubectl delete"}.check(t)
}
