// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiservice registers our API server on this machine with kube-apiserver, for the local cluster and for tests.
package apiservice

import (
	"encoding/base64"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Namespace is where the manifests put our programs, their Service and their service accounts.
const Namespace = "jobset-system"

const (
	// ServiceName is the name of the Service of our API server.
	ServiceName = "jobset-apiserver"
	// WebhookServiceName is the name of the Service under which kube-apiserver asks it about pods, also while it is not ready.
	WebhookServiceName = "jobset-apiserver-webhook"
)

// Hosts are the names under which kube-apiserver reaches our API server.
func Hosts() []string {
	return []string{ServiceName + "." + Namespace + ".svc", WebhookServiceName + "." + Namespace + ".svc"}
}

// Resource is the resource in which kube-apiserver registers groups of other servers.
var Resource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Groups are the groups that our API server serves.
var Groups = []schema.GroupVersion{
	{Group: "jobset.x-k8s.io", Version: "v1alpha2"},
	{Group: "batch.jobset-apiserver.io", Version: "v1alpha1"},
	{Group: "leaderworkerset.x-k8s.io", Version: "v1"},
	{Group: "archive.jobset-apiserver.io", Version: "v1alpha1"},
}

// JobSets is the name of the APIService of JobSets.
var JobSets = Name(Groups[0])

// Name returns the name of the APIService of a group.
func Name(group schema.GroupVersion) string { return group.Version + "." + group.Group }

// Service returns the Service of an API server on this machine. Addresses of endpoints may not be loopback; a name that
// resolves to it may.
func Service(port int) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: ServiceName, Namespace: Namespace},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
			Ports: []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: int32(port)}},
		},
	}
}

// Services returns all Services of an API server on this machine.
func Services(port int) []*corev1.Service {
	webhook := Service(port)
	webhook.Name = WebhookServiceName
	return []*corev1.Service{Service(port), webhook}
}

// New returns the APIService that makes kube-apiserver forward a group to the Service.
func New(group schema.GroupVersion, port int, ca []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": Name(group)},
		"spec": map[string]any{
			"group": group.Group, "version": group.Version, "groupPriorityMinimum": priorityOf(group), "versionPriority": int64(15),
			"caBundle": base64.StdEncoding.EncodeToString(ca),
			"service":  map[string]any{"namespace": Namespace, "name": ServiceName, "port": int64(port)},
		},
	}}
}

// Available returns "True", "False" or "Unknown" as the APIService says, with the message; both are empty before it says.
func Available(apiService *unstructured.Unstructured) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(apiService.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Available" {
			status, _ = c["status"].(string)
			message, _ = c["message"].(string)
		}
	}
	return status, message
}

// priorityOf is the priority of a group in the manifests.
func priorityOf(group schema.GroupVersion) int64 {
	if strings.HasSuffix(group.Group, "jobset-apiserver.io") {
		return 900
	}
	return 1000
}
