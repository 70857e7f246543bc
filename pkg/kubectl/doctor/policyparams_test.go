// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// limits is a policy about a group whose parameters are of a kind, with a binding.
func limits(group, apiVersion, kind string, change func(*admissionregistrationv1.ValidatingAdmissionPolicy)) []runtime.Object {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: apiVersion, Kind: kind},
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				{RuleWithOperations: ruleOf(group)[0]},
			}},
		},
	}
	change(policy)
	return []runtime.Object{policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "limits", ParamRef: &admissionregistrationv1.ParamRef{Name: "x"}},
	}}
}

func samePolicy(*admissionregistrationv1.ValidatingAdmissionPolicy) {}

func TestPolicyParams(t *testing.T) {
	const fine = "the server may read the parameters of all admission policies about our kinds"
	const group = "jobset.x-k8s.io"
	noConfigMaps := []string{"get configmaps", "list configmaps", "watch configmaps"}
	mutating := []runtime.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "defaults"}, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "example.com/v1", Kind: "Limit"},
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				{RuleWithOperations: ruleOf("*")[0]},
			}},
		}},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "defaults", ParamRef: &admissionregistrationv1.ParamRef{Name: "x"}},
		},
	}
	for name, tc := range map[string]struct {
		objects      []runtime.Object
		denied       []string
		refused      map[string]error
		status       Status
		message, fix string
	}{
		"there are none":    {status: OK, message: fine},
		"it may read them":  {objects: limits(group, "v1", "ConfigMap", samePolicy), status: OK, message: fine},
		"about other kinds": {objects: limits("apps", "v1", "ConfigMap", samePolicy), denied: noConfigMaps, status: OK, message: fine},
		"no binding":        {objects: limits(group, "v1", "ConfigMap", samePolicy)[:1], denied: noConfigMaps, status: OK, message: fine},
		"it may not read ConfigMaps": {
			objects: limits(group, "v1", "ConfigMap", samePolicy), denied: noConfigMaps, status: Fail,
			message: "ValidatingAdmissionPolicy limits refuses each write of our kinds that it matches: its parameters are configmaps, and jobset-apiserver may not get, list or watch them",
			fix: "kubectl create clusterrole jobset-policy-params-configmaps --verb=get,list,watch --resource=configmaps && " +
				"kubectl label clusterrole jobset-policy-params-configmaps jobset-apiserver.io/aggregate-to-policy-params=true",
		},
		"it may not watch them": {
			objects: limits(group, "v1", "ConfigMap", samePolicy), denied: noConfigMaps[2:], status: Fail,
			message: "ValidatingAdmissionPolicy limits refuses each write of our kinds that it matches: its parameters are configmaps, and jobset-apiserver may not watch them",
			fix: "kubectl create clusterrole jobset-policy-params-configmaps --verb=get,list,watch --resource=configmaps && " +
				"kubectl label clusterrole jobset-policy-params-configmaps jobset-apiserver.io/aggregate-to-policy-params=true",
		},
		"failures are ignored": {
			objects: limits(group, "v1", "ConfigMap", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
				p.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
			}), denied: noConfigMaps, status: Warn,
			message: "ValidatingAdmissionPolicy limits is ignored for our kinds: its parameters are configmaps, and jobset-apiserver may not get, list or watch them",
			fix: "kubectl create clusterrole jobset-policy-params-configmaps --verb=get,list,watch --resource=configmaps && " +
				"kubectl label clusterrole jobset-policy-params-configmaps jobset-apiserver.io/aggregate-to-policy-params=true",
		},
		"Secrets are no parameters": {
			objects: limits(group, "v1", "Secret", samePolicy), denied: []string{"get secrets", "list secrets", "watch secrets"}, status: Fail,
			message: "ValidatingAdmissionPolicy limits refuses each write of our kinds that it matches: its parameters are secrets, and jobset-apiserver may not get, list or watch them",
			fix:     "use ConfigMaps for the parameters   # the server must not read Secrets",
		},
		"a mutating policy for all kinds, and a kind of others": {
			objects: mutating, denied: []string{"list limits.example.com"}, status: Fail,
			message: "MutatingAdmissionPolicy defaults refuses each write of our kinds that it matches: its parameters are limits.example.com, and jobset-apiserver may not list them",
			fix: "kubectl create clusterrole jobset-policy-params-limits --verb=get,list,watch --resource=limits.example.com && " +
				"kubectl label clusterrole jobset-policy-params-limits jobset-apiserver.io/aggregate-to-policy-params=true",
		},
		"the kind is not served": {
			objects: limits(group, "v1", "Other", samePolicy), status: Fail, message: "the resource of Other in v1 could not be read: kube-apiserver does not serve it",
		},
		"policies may not be read": {
			refused: map[string]error{"validatingadmissionpolicies": forbidden("validatingadmissionpolicies")}, status: Warn,
			message: "you have no permission to read admission policies; the ClusterRole jobset-doctor grants it",
		},
		"mutating policies are not served": {
			refused: map[string]error{"mutatingadmissionpolicybindings": apierrors.NewNotFound(schema.GroupResource{}, "")}, status: OK, message: fine,
		},
	} {
		t.Run(name, func(t *testing.T) {
			resources := func(list string) answer {
				return answer{code: http.StatusOK, body: []byte(`{"resources":[` + list + `]}`)}
			}
			got := cluster{objects: tc.objects, denied: tc.denied, refused: tc.refused, answers: map[string]answer{
				"/api/v1":              resources(`{"name":"configmaps/x","kind":"ConfigMap"},{"name":"configmaps","kind":"ConfigMap"},{"name":"secrets","kind":"Secret"}`),
				"/apis/example.com/v1": resources(`{"name":"limits","kind":"Limit"}`),
			}}.find(t, "policies")
			if got.status != tc.status || got.message != tc.message || got.fix != tc.fix {
				t.Errorf("%s: %s\nfix: %s\nwant %s: %s\nfix: %s", got.status, got.message, got.fix, tc.status, tc.message, tc.fix)
			}
		})
	}
}
