// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// defineJobSets creates a CustomResourceDefinition of JobSets with a status until the test ends. Its schema has the properties.
func defineJobSets(t testing.TB, properties map[string]any) {
	t.Helper()
	all := plane.Dynamic.Resource(definitions)
	object := map[string]any{"type": "object"}
	if properties != nil {
		object["properties"] = properties
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "jobsets.jobset.x-k8s.io"},
		"spec": map[string]any{
			"group": "jobset.x-k8s.io", "scope": "Namespaced",
			"names": map[string]any{"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets", "singular": "jobset"},
			"versions": []any{map[string]any{
				"name": "v1alpha2", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": object},
			}},
		},
	}}
	definition.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, test"})
	if _, err := all.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := all.Delete(ctx, definition.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		framework.EventuallyNoProblem(t, func() string {
			if _, err := all.Get(ctx, definition.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return "the definition still exists"
			}
			return ""
		})
	})
}
