// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// define creates a definition of JobSets with three sets, one of them with a status and a finalizer.
func (m *migrated) define(t *testing.T) {
	t.Helper()
	preserve := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	defineJobSets(t, map[string]any{"spec": preserve, "status": preserve})
	t.Cleanup(func() { m.removeFinalizers(context.WithoutCancel(t.Context()), t) })
	e := newEnv(t, nil, plane.Config)
	m.namespace = e.namespace
	for i := range 3 {
		m.source = append(m.source, *m.create(t, e.dynamic, fmt.Sprint("moved-", i)))
	}
	m.source[0].SetFinalizers([]string{"example.com/guard"})
	_ = unstructured.SetNestedField(m.source[0].Object, int64(7), "status", "restarts")
	for _, write := range []func() (*unstructured.Unstructured, error){
		func() (*unstructured.Unstructured, error) {
			return e.dynamic.UpdateStatus(t.Context(), &m.source[0], metav1.UpdateOptions{})
		},
		func() (*unstructured.Unstructured, error) {
			return e.dynamic.Update(t.Context(), &m.source[0], metav1.UpdateOptions{})
		},
	} {
		written, err := write()
		if err != nil {
			t.Fatal(err)
		}
		m.source[0].SetResourceVersion(written.GetResourceVersion())
		if len(written.GetFinalizers()) > 0 {
			m.source[0] = *written
		}
	}
}

// create creates a set as soon as the definition is served.
func (m *migrated) create(t *testing.T, sets dynamic.ResourceInterface, name string) (created *unstructured.Unstructured) {
	t.Helper()
	set := jobSet(name)
	set.APIVersion, set.Kind = jobsets.GroupVersion().String(), "JobSet"
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the definition is served", func(ctx context.Context) error {
		created, err = sets.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	return created
}

func (m *migrated) removeFinalizers(ctx context.Context, t *testing.T) {
	t.Helper()
	sets := plane.Dynamic.Resource(jobsets).Namespace(m.namespace)
	for _, set := range m.source {
		current, err := sets.Get(ctx, set.GetName(), metav1.GetOptions{})
		if err == nil && len(current.GetFinalizers()) > 0 {
			current.SetFinalizers(nil)
			_, err = sets.Update(ctx, current, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Error(err)
		}
	}
}
