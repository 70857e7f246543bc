// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// WebhookName is the name of the configuration of the webhook for pods of LeaderWorkerSets.
const WebhookName = "jobset-apiserver-pods"

// Webhook returns the configuration that makes kube-apiserver ask the Service about pods of LeaderWorkerSets: that of
// artifacts/base/webhook.yaml with another port.
func Webhook(port int, ca []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: WebhookName},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "mpod.kb.io",
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: ca,
				Service: &admissionregistrationv1.ServiceReference{
					Namespace: Namespace, Name: WebhookServiceName, Path: ptr.To("/mutate--v1-pod"), Port: ptr.To(int32(port)),
				},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: ptr.To(admissionregistrationv1.NamespacedScope),
				},
			}},
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "leaderworkerset.sigs.k8s.io/name", Operator: metav1.LabelSelectorOpExists},
			}},
			FailurePolicy:      ptr.To(admissionregistrationv1.Fail),
			MatchPolicy:        ptr.To(admissionregistrationv1.Equivalent),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
			SideEffects:        ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:     ptr.To[int32](10),
		}},
	}
}
