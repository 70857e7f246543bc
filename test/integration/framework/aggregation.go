// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

const apiServiceName = "v1alpha2.jobset.x-k8s.io"

// Aggregate makes kube-apiserver forward the group to the server and waits until it does. One server at a time.
func (p *ControlPlane) Aggregate(t testing.TB, s *Server) {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "jobset-apiserver", Namespace: "jobset-system"},
		Spec: corev1.ServiceSpec{
			// Addresses of endpoints may not be loopback; a name that resolves to it may.
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
			Ports: []corev1.ServicePort{{Port: int32(s.Port)}},
		},
	}
	if _, err := p.Kube.CoreV1().Services(service.Namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(s.CertDir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": apiServiceName},
		"spec": map[string]any{
			"group": "jobset.x-k8s.io", "version": "v1alpha2", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
			"caBundle": base64.StdEncoding.EncodeToString(ca),
			"service":  map[string]any{"namespace": service.Namespace, "name": service.Name, "port": int64(s.Port)},
		},
	}}
	if _, err := p.Dynamic.Resource(apiServices).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := p.Dynamic.Resource(apiServices).Delete(ctx, apiServiceName, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := p.Kube.CoreV1().Services(service.Namespace).Delete(ctx, service.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	Eventually(t, time.Minute, "the APIService is available and the group discovered", func(ctx context.Context) error {
		current, err := p.Dynamic.Resource(apiServices).Get(ctx, apiServiceName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(current.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, condition := range conditions {
			if c := condition.(map[string]any); c["type"] == "Available" && c["status"] == "True" {
				_, err := p.Kube.Discovery().ServerResourcesForGroupVersion("jobset.x-k8s.io/v1alpha2")
				return err
			}
		}
		return fmt.Errorf("conditions are %v", conditions)
	})
}

// Eventually polls until the check passes.
func Eventually(t testing.TB, timeout time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v: %v", what, err, last)
	}
}

// Get asks for a path and returns the status code, which is 0 when nothing answers, and the body.
func Get(t testing.TB, config *rest.Config, path string) (int, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
