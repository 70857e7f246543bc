// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// evaluators returns the health checks of the Kustomization, which Flux finds by group and kind.
func evaluators(t *testing.T) map[schema.GroupKind]*cel.StatusEvaluator {
	t.Helper()
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	read(t, "artifacts/gitops/flux-kustomization.yaml", &kustomization)
	found := map[schema.GroupKind]*cel.StatusEvaluator{}
	for _, check := range kustomization.Spec.HealthCheckExprs {
		evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			t.Fatalf("%s: %v", check.Kind, err)
		}
		found[schema.FromAPIVersionAndKind(check.APIVersion, check.Kind).GroupKind()] = evaluator
	}
	return found
}

// evaluate returns the status of an object by the expressions for its kind. They fail for an object without a status, because expressions of
// Flux cannot ask whether there is one. Flux then takes the status for unknown, and looks again.
func evaluate(t *testing.T, evaluators map[schema.GroupKind]*cel.StatusEvaluator, object *unstructured.Unstructured) string {
	t.Helper()
	kind := object.GroupVersionKind().GroupKind()
	evaluator, found := evaluators[kind]
	if !found {
		t.Fatalf("flux-kustomization.yaml has no expressions for %s", kind)
	}
	result, err := evaluator.Evaluate(t.Context(), object)
	if _, written := object.Object["status"]; err != nil && !written {
		return status.UnknownStatus.String()
	}
	if err != nil {
		t.Fatalf("%s %s: %v", kind, object.GetName(), err)
	}
	return result.Status.String()
}

// compute returns the status of an object without expressions.
func compute(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	result, err := status.Compute(object)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status.String()
}
