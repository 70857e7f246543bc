// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

func actionRule(action string) admissionregistrationv1.RuleWithOperations {
	rule := jobSetRule(admissionregistrationv1.Create)
	rule.Resources = []string{"jobsets/" + action}
	return rule
}

func (e *env) matchAction(action string) *admissionregistrationv1.MatchResources {
	match := e.match()
	match.ResourceRules[0].RuleWithOperations = actionRule(action)
	return match
}

func testActionPolicy(t *testing.T, e *env) {
	e.running(t, "a")
	e.validatingPolicy(t, e.matchAction("restart"),
		"object.kind == 'JobSetRestart' && object.metadata.name == 'a' && object.spec.?reason.orValue('') != ''", "a restart needs a reason")
	framework.Eventually(t, "it is refused", func(ctx context.Context) error {
		_, err := e.typed.Restart(ctx, "a", &batchv1alpha1.JobSetRestart{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "a restart needs a reason") {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	if _, err := e.typed.Restart(t.Context(), "a", restartOf(1), metav1.CreateOptions{}); err != nil {
		t.Errorf("with a reason: %v", err)
	}
	if err := calls["suspend"](t.Context(), e.typed, "a"); err != nil {
		t.Errorf("another action: %v", err)
	}
}

// testActionMutation: the plugin needs the schemas of the requests, and of Scale, to merge what a policy adds.
func testActionMutation(t *testing.T, e *env) {
	e.running(t, "a")
	e.mutatingPolicy(t, e.matchAction("restart"), admissionregistrationv1.Mutation{
		PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
			Expression: `Object{spec: Object.spec{reason: "asked by " + request.userInfo.username}}`,
		},
	})
	framework.Eventually(t, "the reason is filled in", func(ctx context.Context) error {
		answer, err := e.typed.Restart(ctx, "a", &batchv1alpha1.JobSetRestart{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && answer.Spec.Reason != "asked by "+answer.Status.User {
			err = fmt.Errorf("the answer is %+v", answer)
		}
		return err
	})
}

func testActionWebhooks(t *testing.T, e *env) {
	e.running(t, "a")
	mutating := newWebhook(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		patch := `[{"op":"add","path":"/spec/reason","value":"ticket 1"}]`
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: ptr.To(admissionv1.PatchTypeJSONPatch)}
	})
	validating := newWebhook(t, func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		var cancel batchv1alpha1.JobSetCancel
		if err := json.Unmarshal(request.Object.Raw, &cancel); err != nil || request.SubResource != "cancel" || request.Name != "a" {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "no cancel of a"}}
		}
		return &admissionv1.AdmissionResponse{Allowed: cancel.Spec.Reason == "ticket 1", Result: &metav1.Status{Message: "no ticket"}}
	})
	webhooks := plane.Kube.AdmissionregistrationV1()
	_, err := webhooks.ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.example.com", ClientConfig: validating.client(), NamespaceSelector: e.here(),
			Rules:       []admissionregistrationv1.RuleWithOperations{actionRule("cancel")},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	framework.Eventually(t, "it is refused", func(ctx context.Context) error {
		_, err := e.typed.Cancel(ctx, "a", &batchv1alpha1.JobSetCancel{}, dryRun)
		if err == nil || !strings.Contains(err.Error(), `admission webhook "validate.example.com" denied the request: no ticket`) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	_, err = webhooks.MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.example.com", ClientConfig: mutating.client(), NamespaceSelector: e.here(),
			Rules:       []admissionregistrationv1.RuleWithOperations{actionRule("cancel")},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "it is changed and allowed", func(ctx context.Context) error {
		_, err := e.typed.Cancel(ctx, "a", &batchv1alpha1.JobSetCancel{}, dryRun)
		return err
	})
	if err := calls["cancel"](t.Context(), e.typed, "a"); err != nil {
		t.Fatal(err)
	}
	if reason := e.get(t, "a").Status.Attempts[0].EndReason; reason != "ticket 1" {
		t.Errorf("the reason is %q", reason)
	}
}
