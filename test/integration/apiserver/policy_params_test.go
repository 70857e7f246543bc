// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestPolicyWithParameters: a policy whose parameters the server may not read refuses each write that it matches. The refusal names the
// permission, and with the permission the policy decides, without a restart of the server.
func TestPolicyWithParameters(t *testing.T) {
	tier.OnRequest(t, "a second server")
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	e := newEnv(t, server, server.Config(t))
	limits := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Data: map[string]string{"most": "0"}}
	if _, err := plane.Kube.CoreV1().ConfigMaps(e.namespace).Create(t.Context(), limits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.limit(t)
	const permission = "jobset-apiserver needs the permission to get, list and watch the parameters of the policy (ConfigMap of the core group)"
	e.refused(t, "the refusal names the permission", permission)

	name := "policy-params-" + e.namespace
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
	binding := &rbacv1.ClusterRoleBinding{ // which the aggregation of roles spares users; its controller does not run here
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "jobset-system", Name: "jobset-apiserver"}},
	}
	roles := plane.Kube.RbacV1()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(roles.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}), roles.ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
	if _, err := roles.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.refused(t, "the policy decides", "too many replicatedJobs")
}

// limit binds a policy to the namespace whose parameters are in a ConfigMap.
func (e *env) limit(t *testing.T) {
	t.Helper()
	api := plane.Kube.AdmissionregistrationV1()
	meta := metav1.ObjectMeta{Name: "limit-" + e.namespace}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{jobsets.Group}, APIVersions: []string{"*"}, Resources: []string{jobsets.Resource}},
			},
		}}},
		Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.replicatedJobs.size() <= int(params.data.most)", Message: "too many replicatedJobs"}},
	}}
	deny := admissionregistrationv1.DenyAction
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		ParamRef:       &admissionregistrationv1.ParamRef{Name: "limits", ParameterNotFoundAction: &deny},
		MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: e.here()},
	}}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(api.ValidatingAdmissionPolicyBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{}), api.ValidatingAdmissionPolicies().Delete(ctx, meta.Name, metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
	if _, err := api.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// refused waits until a creation is refused with a text.
func (e *env) refused(t *testing.T, what, text string) {
	t.Helper()
	framework.Eventually(t, what, func(ctx context.Context) error {
		_, err := e.typed.Create(ctx, jobSet("a"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	})
}
