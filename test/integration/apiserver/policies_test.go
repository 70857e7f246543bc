// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// validatingPolicy refuses, with the message, what the expression does not hold for.
func (e *env) validatingPolicy(t *testing.T, match *admissionregistrationv1.MatchResources, expression, message string) {
	t.Helper()
	client := plane.Kube.AdmissionregistrationV1()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchConstraints: match,
			Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: message}},
		},
	}
	if _, err := client.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: e.namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if _, err := client.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// olderThan returns whether the control plane is older than a version of Kubernetes.
func olderThan(t *testing.T, other string) bool {
	t.Helper()
	return framework.OlderThan(t, plane.Kube.Discovery(), other)
}

// mutatingPolicy changes what matches. The test is skipped before Kubernetes 1.36, which has no such policies in v1.
func (e *env) mutatingPolicy(t *testing.T, match *admissionregistrationv1.MatchResources, mutations ...admissionregistrationv1.Mutation) {
	t.Helper()
	if olderThan(t, "v1.36.0") {
		t.Skip("Kubernetes has no MutatingAdmissionPolicies of v1 before 1.36")
	}
	client := plane.Kube.AdmissionregistrationV1()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchConstraints: match,
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy, Mutations: mutations,
		},
	}
	if _, err := client.MutatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: e.namespace},
	}
	if _, err := client.MutatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
