// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"bytes"
	"os"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	celenvironment "k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// agentPolicy returns the policy of the manifests, as kube-apiserver compiles it.
func agentPolicy(t *testing.T) validating.Validator {
	t.Helper()
	content, err := os.ReadFile("../../artifacts/examples/in-place-restart/admission-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := yaml.Unmarshal(bytes.SplitN(content, []byte("\n---\n"), 2)[0], policy); err != nil {
		t.Fatal(err)
	}
	compiler, err := cel.NewCompositedCompiler(celenvironment.MustBaseEnvSet(celenvironment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, cel.OptionalVariableDeclarations{}, celenvironment.NewExpressions)
	var conditions []cel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	validations, messages := make([]cel.ExpressionAccessor, len(policy.Spec.Validations)), make([]cel.ExpressionAccessor, len(policy.Spec.Validations))
	for i, v := range policy.Spec.Validations {
		validations[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message}
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	compile := func(expressions []cel.ExpressionAccessor) cel.ConditionEvaluator {
		return compiler.CompileCondition(expressions, cel.OptionalVariableDeclarations{}, celenvironment.NewExpressions)
	}
	matcher := matchconditions.NewMatcher(compile(conditions), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	return validating.NewValidator(compile(validations), matcher, compile(nil), compile(messages), policy.Spec.FailurePolicy, nil)
}

// TestPolicyAllowsOnlyTheOwnPod evaluates the policy for tokens that were issued for the pod, for another one and for none.
func TestPolicyAllowsOnlyTheOwnPod(t *testing.T) {
	policy := agentPolicy(t)
	const account = "system:serviceaccount:default:" + programName
	const bound = "the restart agent must have a token that was issued for its pod: use the one that kubelet mounts, and none of a Secret or of kubectl create token"
	for name, c := range map[string]struct {
		user  string
		extra map[string][]string
		want  string
	}{
		"a token for the pod":                 {account, map[string][]string{"authentication.kubernetes.io/pod-name": {"own"}}, ""},
		"a token for another pod":             {account, map[string][]string{"authentication.kubernetes.io/pod-name": {"other"}}, "the restart agent may only update its own pod"},
		"a token for no pod":                  {account, nil, bound},
		"a token for a node":                  {account, map[string][]string{"authentication.kubernetes.io/node-name": {"own"}}, bound},
		"a token for a pod without a name":    {account, map[string][]string{"authentication.kubernetes.io/pod-name": {}}, bound},
		"another account, a token for no pod": {"system:serviceaccount:default:other", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "default"}}
			after := before.DeepCopy()
			after.Annotations = map[string]string{attemptKey: "1"}
			kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
			attributes := admission.NewAttributesRecord(after, before, kind, "default", "own", resource, "", admission.Update, &metav1.UpdateOptions{}, false,
				&user.DefaultInfo{Name: c.user, Extra: c.extra})
			versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(after), VersionedOldObject: admission.NewLazyObject(before)}
			message := ""
			for _, decision := range policy.Validate(t.Context(), resource, versioned, nil, nil, celconfig.RuntimeCELCostBudget, nil).Decisions {
				if decision.Action != validating.ActionAdmit {
					message += decision.Message
				}
			}
			if message != c.want {
				t.Errorf("the policy says %q, want %q", message, c.want)
			}
		})
	}
}
