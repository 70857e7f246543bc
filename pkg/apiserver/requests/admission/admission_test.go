// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
)

func TestUnsupported(t *testing.T) {
	all := []string{
		"mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	}
	cases := map[string]struct {
		served []string
		want   []string
	}{
		"a cluster that serves everything":       {served: all},
		"a cluster that lacks mutating policies": {served: all[:3], want: []string{"MutatingAdmissionPolicy"}},
		"a cluster that lacks their bindings":    {served: all[:4], want: []string{"MutatingAdmissionPolicy"}},
		"a cluster that lacks all policies":      {served: all[:1], want: []string{"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"}},
		"a cluster that lacks the group":         {want: []string{"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			list := &metav1.APIResourceList{GroupVersion: "admissionregistration.k8s.io/v1"}
			for _, name := range c.served {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
			client.Fake = clienttesting.Fake{}
			if c.served != nil {
				client.Resources = []*metav1.APIResourceList{list}
			}
			got, err := Unsupported(client.Discovery())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionsNameEveryPlugin(t *testing.T) {
	if errs := NewOptions(apigroups.All().Plugins()).Validate(); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestQuotaCountsJobSets(t *testing.T) {
	configuration := newQuotaConfiguration(apigroups.All().Stored()...)
	var got []corev1.ResourceName
	for _, evaluator := range configuration.Evaluators() {
		got = append(got, evaluator.MatchingResources([]corev1.ResourceName{"count/jobsets.jobset.x-k8s.io", "count/jobs.batch", "pods"})...)
	}
	if diff := cmp.Diff([]corev1.ResourceName{"count/jobsets.jobset.x-k8s.io"}, got); diff != "" {
		t.Errorf("counted resources (-want +got):\n%s", diff)
	}
}
