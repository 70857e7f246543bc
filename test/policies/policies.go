// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies evaluates a ValidatingAdmissionPolicy of the manifests as kube-apiserver does.
package policies

import (
	"bytes"
	"os"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// Policy is a policy that is compiled.
type Policy struct{ validator validating.Validator }

// Read returns the only ValidatingAdmissionPolicy of a file.
func Read(t *testing.T, file string) *Policy {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := yaml.Unmarshal(document, policy); err == nil && policy.Kind == "ValidatingAdmissionPolicy" {
			return compile(t, policy)
		}
	}
	t.Fatalf("%s has no ValidatingAdmissionPolicy", file)
	return nil
}

func compile(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) *Policy {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, cel.OptionalVariableDeclarations{}, environment.NewExpressions)
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
	evaluator := func(expressions []cel.ExpressionAccessor) cel.ConditionEvaluator {
		return compiler.CompileCondition(expressions, cel.OptionalVariableDeclarations{}, environment.NewExpressions)
	}
	matcher := matchconditions.NewMatcher(evaluator(conditions), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	return &Policy{validating.NewValidator(evaluator(validations), matcher, evaluator(nil), evaluator(messages), policy.Spec.FailurePolicy, nil)}
}

// Refuses returns why the policy refuses a request, in the words of its messages and errors; empty if it does not. The objects of the
// request must have their kinds.
func (p *Policy) Refuses(t *testing.T, request admission.Attributes) string {
	t.Helper()
	versioned := &admission.VersionedAttributes{Attributes: request, VersionedKind: request.GetKind()}
	if object := request.GetObject(); object != nil {
		versioned.VersionedObject = admission.NewLazyObject(object)
	}
	if old := request.GetOldObject(); old != nil {
		versioned.VersionedOldObject = admission.NewLazyObject(old)
	}
	var messages []string
	for _, decision := range p.validator.Validate(t.Context(), request.GetResource(), versioned, nil, nil, celconfig.RuntimeCELCostBudget, nil).Decisions {
		if decision.Action != validating.ActionAdmit {
			messages = append(messages, decision.Message)
		}
	}
	return strings.Join(messages, "; ")
}
