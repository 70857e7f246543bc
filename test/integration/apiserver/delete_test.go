// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func testDelete(t *testing.T, e *env) {
	e.create(t, jobSet("background"))
	if err := e.typed.Delete(t.Context(), "background", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.typed.Get(t.Context(), "background", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a background delete: %v", err)
	}

	js := e.create(t, jobSet("foreground"))
	wrong := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("other"))}}
	if err := e.typed.Delete(t.Context(), js.Name, wrong); !apierrors.IsConflict(err) {
		t.Errorf("deleting with another UID: %v", err)
	}
	if err := e.typed.Delete(t.Context(), js.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	got := e.get(t, js.Name)
	if got.DeletionTimestamp == nil || len(got.Finalizers) != 1 || got.Finalizers[0] != metav1.FinalizerDeleteDependents {
		t.Errorf("after a foreground delete: %+v", got.ObjectMeta)
	}
	// This is what the garbage collector does once the children are gone.
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q,"finalizers":[]}}`, got.UID, got.ResourceVersion)
	collector, err := metadata.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collector.Resource(jobsets).Namespace(e.namespace).Patch(t.Context(), js.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.typed.Get(t.Context(), js.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer: %v", err)
	}
}

func testDeleteCollection(t *testing.T, e *env) {
	for i := range 12 {
		e.create(t, jobSet(fmt.Sprintf("a%d", i), func(js *jobsetv1alpha2.JobSet) {
			js.Labels = map[string]string{"half": fmt.Sprint(i % 2)}
		}))
	}
	options := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	if err := e.typed.DeleteCollection(t.Context(), options, metav1.ListOptions{LabelSelector: "half=1"}); err != nil {
		t.Fatal(err)
	}
	left, err := e.typed.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 6 {
		t.Errorf("%d are left, not 6: %v", len(left.Items), err)
	}
}

// testNamespaceContent repeats the calls of the namespace controller, which speaks protobuf: when one of them is not
// understood, no namespace of the cluster ever ends.
func testNamespaceContent(t *testing.T, e *env) {
	for i := range 5 {
		e.create(t, jobSet(fmt.Sprintf("a%d", i)))
	}
	client, err := metadata.NewForConfig(metadata.ConfigFor(e.config))
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(jobsets).Namespace(e.namespace)
	background := metav1.DeletePropagationBackground
	if err := resource.DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := resource.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d are left: %v", len(list.Items), err)
	}
}
