// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// recorder keeps the warnings that a server sends.
type recorder struct {
	mu       sync.Mutex
	warnings []string
}

var _ rest.WarningHandlerWithContext = &recorder{}

func (r *recorder) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, text)
}

// has reports whether a warning contains the text.
func (r *recorder) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, warning := range r.warnings {
		if strings.Contains(warning, text) {
			return true
		}
	}
	return false
}

// recording returns a copy of the configuration whose warnings are kept.
func recording(config *rest.Config) (*rest.Config, *recorder) {
	r := &recorder{}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = r
	return config, r
}

func testFieldValidation(t *testing.T, e *env) {
	config, warnings := recording(e.config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"suspended": true},
		}}
	}
	create := func(name, validation string) error {
		_, err := client.Resource(jobsets).Namespace(e.namespace).Create(t.Context(), object(name), metav1.CreateOptions{FieldValidation: validation})
		return err
	}
	if err := create("a", metav1.FieldValidationStrict); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.suspended") {
		t.Errorf("strict: %v", err)
	}
	if err := create("b", metav1.FieldValidationIgnore); err != nil || warnings.has("spec.suspended") {
		t.Errorf("ignore: %v, %v", err, warnings.warnings)
	}
	if err := create("c", metav1.FieldValidationWarn); err != nil || !warnings.has("spec.suspended") {
		t.Errorf("warn: %v, %v", err, warnings.warnings)
	}
}

func testWarnings(t *testing.T, e *env) {
	config, warnings := recording(e.config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	js := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"failurePolicy": map[string]any{"maxRestarts": int64(-1)}},
	}}
	if _, err := client.Resource(jobsets).Namespace(e.namespace).Create(t.Context(), js, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if !warnings.has("spec.failurePolicy.maxRestarts") {
		t.Errorf("warnings are %v", warnings.warnings)
	}
}
