// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/policies"
)

// sliceWith is an EndpointSlice with labels.
func sliceWith(labels map[string]string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slice", Labels: labels},
	}
}

// TestControllerMayWriteOnlyItsSlices evaluates the policy that limits the permission of the controller.
func TestControllerMayWriteOnlyItsSlices(t *testing.T) {
	const account = "system:serviceaccount:jobset-system:jobset-controller-manager"
	const writes = "jobset-controller may write only EndpointSlices with the labels " +
		"endpointslice.kubernetes.io/managed-by=controller.jobset-apiserver.io and service.kubernetes.io/headless"
	const changes = "jobset-controller may change and delete only EndpointSlices with the label " +
		"endpointslice.kubernetes.io/managed-by=controller.jobset-apiserver.io"
	own := sliceWith(map[string]string{discoveryv1.LabelManagedBy: endpointslices.ManagedBy, corev1.IsHeadlessService: "", discoveryv1.LabelServiceName: "a"})
	proxied := sliceWith(map[string]string{discoveryv1.LabelManagedBy: endpointslices.ManagedBy})
	others := sliceWith(map[string]string{discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", corev1.IsHeadlessService: ""})
	bare := sliceWith(nil)
	policy := policies.Read(t, "../../../artifacts/base/rbac/endpoints.yaml")
	for name, tc := range map[string]struct {
		operation   admission.Operation
		object, old *discoveryv1.EndpointSlice
		want        string
	}{
		"creates its slice":             {admission.Create, own, nil, ""},
		"updates its slice":             {admission.Update, own, own, ""},
		"deletes its slice":             {admission.Delete, nil, own, ""},
		"deletes what lost a label":     {admission.Delete, nil, proxied, ""},
		"creates one for kube-proxy":    {admission.Create, proxied, nil, writes},
		"makes its slice one for it":    {admission.Update, proxied, own, writes},
		"creates one of the cluster":    {admission.Create, others, nil, writes},
		"creates one without labels":    {admission.Create, bare, nil, writes},
		"takes over one of the cluster": {admission.Update, own, others, changes},
		"takes over one of a user":      {admission.Update, own, bare, changes},
		"deletes one of the cluster":    {admission.Delete, nil, others, changes},
		"deletes one of a user":         {admission.Delete, nil, bare, changes},
	} {
		t.Run(name, func(t *testing.T) {
			var object, old runtime.Object
			if tc.object != nil {
				object = tc.object
			}
			if tc.old != nil {
				old = tc.old
			}
			request := func(name string) admission.Attributes {
				return admission.NewAttributesRecord(object, old, discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), "ns", "slice",
					discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), "", tc.operation, nil, false, &user.DefaultInfo{Name: name})
			}
			if got := policy.Refuses(t, request(account)); got != tc.want {
				t.Errorf("the policy says %q, want %q", got, tc.want)
			}
			if got := policy.Refuses(t, request("system:serviceaccount:kube-system:endpointslice-controller")); got != "" {
				t.Errorf("the policy says of another writer: %s", got)
			}
		})
	}
}
