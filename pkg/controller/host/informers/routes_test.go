// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestOwnGroups: a group that kube-apiserver serves itself is absent, and what is not known is no reason to leave objects alone.
func TestOwnGroups(t *testing.T) {
	gv := schema.GroupVersion{Group: "jobset.x-k8s.io", Version: "v1alpha2"}
	service := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": "v1alpha2.jobset.x-k8s.io"}, "spec": spec}}
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		refused error
		absent  bool
	}{
		"forwarded":             {objects: []runtime.Object{service(map[string]any{"service": map[string]any{"name": "jobset-apiserver"}})}},
		"served from a CRD":     {objects: []runtime.Object{service(map[string]any{"version": "v1alpha2"})}, absent: true},
		"served from a CRD too": {objects: []runtime.Object{service(map[string]any{"service": nil})}, absent: true},
		"without an APIService": {},
		"without a permission":  {refused: apierrors.NewForbidden(schema.GroupResource{Resource: "apiservices"}, "", errors.New("no"))},
	} {
		kube := fake.NewClientset()
		kube.Resources = []*metav1.APIResourceList{{GroupVersion: gv.String()}}
		client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), tc.objects...)
		if tc.refused != nil {
			client.PrependReactor("get", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.refused })
		}
		f := NewRoutedFactory(kube, RoutesOf(client))
		if err := f.Own(t.Context(), gv); apierrors.IsNotFound(err) != tc.absent || (err != nil) != tc.absent {
			t.Errorf("%s: %v", name, err)
		}
	}
}
