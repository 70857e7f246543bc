// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// defaulted is what create fills into an empty spec.
func defaulted(change func(*api.JobSetSpec)) api.JobSetSpec {
	spec := api.JobSetSpec{
		SuccessPolicy: &api.SuccessPolicy{Operator: api.OperatorAll},
		StartupPolicy: &api.StartupPolicy{StartupPolicyOrder: api.AnyOrder},
		Network:       &api.Network{EnableDNSHostnames: ptr.To(true), PublishNotReadyAddresses: ptr.To(true)},
	}
	change(&spec)
	return spec
}

func jobs(spec batchv1.JobSpec) []api.ReplicatedJob {
	return []api.ReplicatedJob{{Name: "w", Template: batchv1.JobTemplateSpec{Spec: spec}}}
}

func podWith(policy corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "main"}}}}
}

func TestCreateDefaults(t *testing.T) {
	claims := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	retain := &api.VolumeRetentionPolicy{WhenDeleted: ptr.To(api.RetentionPolicyRetain)}
	cases := map[string]struct {
		spec api.JobSetSpec
		want api.JobSetSpec
	}{
		"2.2-1 2.2-2 2.2-4 an empty spec": {want: defaulted(func(*api.JobSetSpec) {})},
		"2.2-1 a success policy stays": {
			spec: api.JobSetSpec{SuccessPolicy: &api.SuccessPolicy{Operator: api.OperatorAny}},
			want: defaulted(func(s *api.JobSetSpec) { s.SuccessPolicy.Operator = api.OperatorAny }),
		},
		"2.2-2 a startup policy stays": {
			spec: api.JobSetSpec{StartupPolicy: &api.StartupPolicy{StartupPolicyOrder: api.InOrder}},
			want: defaulted(func(s *api.JobSetSpec) { s.StartupPolicy.StartupPolicyOrder = api.InOrder }),
		},
		"2.2-3 a Job without modes": {
			spec: api.JobSetSpec{ReplicatedJobs: jobs(batchv1.JobSpec{Template: podWith("")})},
			want: defaulted(func(s *api.JobSetSpec) {
				s.ReplicatedJobs = jobs(batchv1.JobSpec{CompletionMode: ptr.To(batchv1.IndexedCompletion), Template: podWith(corev1.RestartPolicyOnFailure)})
			}),
		},
		"2.2-3 a Job with modes of its own": {
			spec: api.JobSetSpec{ReplicatedJobs: jobs(batchv1.JobSpec{CompletionMode: ptr.To(batchv1.NonIndexedCompletion), Template: podWith(corev1.RestartPolicyNever)})},
			want: defaulted(func(s *api.JobSetSpec) {
				s.ReplicatedJobs = jobs(batchv1.JobSpec{CompletionMode: ptr.To(batchv1.NonIndexedCompletion), Template: podWith(corev1.RestartPolicyNever)})
			}),
		},
		"2.2-3 a missing template stays missing, to be refused": {
			spec: api.JobSetSpec{ReplicatedJobs: jobs(batchv1.JobSpec{})},
			want: defaulted(func(s *api.JobSetSpec) { s.ReplicatedJobs = jobs(batchv1.JobSpec{}) }),
		},
		"2.2-3 a missing pod template stays missing, to be refused": {
			spec: api.JobSetSpec{ReplicatedJobs: jobs(batchv1.JobSpec{BackoffLimit: ptr.To[int32](0)})},
			want: defaulted(func(s *api.JobSetSpec) {
				s.ReplicatedJobs = jobs(batchv1.JobSpec{BackoffLimit: ptr.To[int32](0), CompletionMode: ptr.To(batchv1.IndexedCompletion)})
			}),
		},
		"2.2-4 a network without host names": {
			spec: api.JobSetSpec{Network: &api.Network{EnableDNSHostnames: ptr.To(false), PublishNotReadyAddresses: ptr.To(false), Subdomain: "mesh"}},
			want: defaulted(func(s *api.JobSetSpec) {
				s.Network = &api.Network{EnableDNSHostnames: ptr.To(false), PublishNotReadyAddresses: ptr.To(false), Subdomain: "mesh"}
			}),
		},
		"2.2-5 rules without a name are named by their index": {
			spec: api.JobSetSpec{FailurePolicy: &api.FailurePolicy{Rules: []api.FailurePolicyRule{{Name: "own"}, {}, {}}}},
			want: defaulted(func(s *api.JobSetSpec) {
				s.FailurePolicy = &api.FailurePolicy{Rules: []api.FailurePolicyRule{{Name: "own"}, {Name: "failurePolicyRule1"}, {Name: "failurePolicyRule2"}}}
			}),
		},
		"2.2-6 claims are deleted unless told otherwise": {
			spec: api.JobSetSpec{VolumeClaimPolicies: []api.VolumeClaimPolicy{{Templates: claims}, {Templates: claims, RetentionPolicy: retain}}},
			want: defaulted(func(s *api.JobSetSpec) {
				s.VolumeClaimPolicies = []api.VolumeClaimPolicy{
					{Templates: claims, RetentionPolicy: &api.VolumeRetentionPolicy{WhenDeleted: ptr.To(api.RetentionPolicyDelete)}},
					{Templates: claims, RetentionPolicy: retain},
				}
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			main, _ := strategies(gates.Gates{})
			js := &api.JobSet{Spec: tc.spec}
			main.PrepareForCreate(inNamespace(), js)
			if diff := cmp.Diff(tc.want, js.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			main.PrepareForCreate(inNamespace(), js)
			if diff := cmp.Diff(tc.want, js.Spec); diff != "" {
				t.Errorf("defaulting twice differs (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever a write removes stays removed, but for what create filled into items of atomic lists: appliers replace those
// lists as a whole.
func TestUpdateDefaults(t *testing.T) {
	claims := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	rules := func(names ...string) *api.FailurePolicy {
		p := &api.FailurePolicy{RestartStrategy: api.RestartStrategyRecreate}
		for _, name := range names {
			p.Rules = append(p.Rules, api.FailurePolicyRule{Name: name, Action: api.FailJobSet})
		}
		return p
	}
	policy := func(retention api.RetentionPolicyType) []api.VolumeClaimPolicy {
		p := api.VolumeClaimPolicy{Templates: claims}
		if retention != "" {
			p.RetentionPolicy = &api.VolumeRetentionPolicy{WhenDeleted: ptr.To(retention)}
		}
		return []api.VolumeClaimPolicy{p}
	}
	cases := map[string]struct{ prev, next, want api.JobSetSpec }{
		"removed sections stay removed":                {prev: defaulted(func(*api.JobSetSpec) {})},
		"generated rule names are kept":                {prev: api.JobSetSpec{FailurePolicy: rules("failurePolicyRule0", "b")}, next: api.JobSetSpec{FailurePolicy: rules("", "b")}, want: api.JobSetSpec{FailurePolicy: rules("failurePolicyRule0", "b")}},
		"rule names that the user gave are not":        {prev: api.JobSetSpec{FailurePolicy: rules("a")}, next: api.JobSetSpec{FailurePolicy: rules("")}, want: api.JobSetSpec{FailurePolicy: rules("")}},
		"rules of a new policy are not named":          {next: api.JobSetSpec{FailurePolicy: rules("")}, want: api.JobSetSpec{FailurePolicy: rules("")}},
		"the default retention is kept":                {prev: api.JobSetSpec{VolumeClaimPolicies: policy("Delete")}, next: api.JobSetSpec{VolumeClaimPolicies: policy("")}, want: api.JobSetSpec{VolumeClaimPolicies: policy("Delete")}},
		"a retention that the user gave is not":        {prev: api.JobSetSpec{VolumeClaimPolicies: policy("Retain")}, next: api.JobSetSpec{VolumeClaimPolicies: policy("")}, want: api.JobSetSpec{VolumeClaimPolicies: policy("")}},
		"a retention that the user gives now is taken": {prev: api.JobSetSpec{VolumeClaimPolicies: policy("Delete")}, next: api.JobSetSpec{VolumeClaimPolicies: policy("Retain")}, want: api.JobSetSpec{VolumeClaimPolicies: policy("Retain")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			main, _ := strategies(gates.Gates{})
			prev, next := &api.JobSet{Spec: tc.prev}, &api.JobSet{Spec: tc.next}
			main.PrepareForUpdate(inNamespace(), next, prev)
			if diff := cmp.Diff(tc.want, next.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}
