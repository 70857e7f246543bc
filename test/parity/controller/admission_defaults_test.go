// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// template changes the Job template of replicated-job-a.
func template(change func(*batchv1.JobSpec)) func(*jobSet) {
	return func(js *jobSet) { change(&js.Spec.ReplicatedJobs[0].Template.Spec) }
}

func TestRow7_2_01_CompletionMode(t *testing.T) {
	for name, tc := range map[string]struct {
		sent *batchv1.CompletionMode
		want batchv1.CompletionMode
	}{
		"unset becomes Indexed": {nil, batchv1.IndexedCompletion},
		"NonIndexed stays":      {ptr.To(batchv1.NonIndexedCompletion), batchv1.NonIndexedCompletion},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, released)
			js := e.create(testJobSet(suspend, template(func(spec *batchv1.JobSpec) { spec.CompletionMode = tc.sent })))
			if got := ptr.Deref(js.Spec.ReplicatedJobs[0].Template.Spec.CompletionMode, ""); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRow7_2_02_NetworkDefaults(t *testing.T) {
	for name, sent := range map[string]*jobsetv1alpha2.Network{
		"without network": nil, "with an empty network": {}, "with a subdomain": {Subdomain: "sub"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, released)
			js := e.create(testJobSet(suspend, func(js *jobSet) { js.Spec.Network = sent }))
			want := &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), PublishNotReadyAddresses: ptr.To(true)}
			if sent != nil {
				want.Subdomain = sent.Subdomain
			}
			if diff := cmp.Diff(want, js.Spec.Network); diff != "" {
				t.Errorf("network (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRow7_2_03_PodRestartPolicy(t *testing.T) {
	for name, tc := range map[string]struct{ sent, want corev1.RestartPolicy }{
		"unset becomes OnFailure": {"", corev1.RestartPolicyOnFailure},
		"Never stays":             {corev1.RestartPolicyNever, corev1.RestartPolicyNever},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, released)
			js := e.create(testJobSet(suspend, template(func(spec *batchv1.JobSpec) { spec.Template.Spec.RestartPolicy = tc.sent })))
			if got := js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.RestartPolicy; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRow7_2_04_SuccessPolicyDefault(t *testing.T) {
	e := newEnv(t, released)
	js := e.create(testJobSet(suspend))
	if diff := cmp.Diff(&jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}, js.Spec.SuccessPolicy); diff != "" {
		t.Errorf("success policy (-want +got):\n%s", diff)
	}
}

func TestRow7_2_05_FailurePolicyDefault(t *testing.T) {
	e := newEnv(t, released)
	js := e.create(testJobSet(suspend, func(js *jobSet) { js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{} }))
	want := &jobsetv1alpha2.FailurePolicy{RestartStrategy: jobsetv1alpha2.RestartStrategyRecreate}
	if diff := cmp.Diff(want, js.Spec.FailurePolicy); diff != "" {
		t.Errorf("failure policy (-want +got):\n%s", diff)
	}
}

// Upstream's typed client cannot send 0, which so arrives as 1. Our client can.
func TestRow7_2_12_Replicas(t *testing.T) {
	t.Run("-1 is refused", func(t *testing.T) {
		e := newEnv(t, released)
		e.refused(e.tryCreate(testJobSet(replicas(-1))), "spec.replicatedJobs[0].replicas", "must be 0 or more")
	})
	t.Run("0 from a typed client is 0", func(t *testing.T) {
		e := newEnv(t, released)
		js := e.create(testJobSet(suspend, replicas(0)))
		if got := js.Spec.ReplicatedJobs[0].Replicas; got == nil || *got != 0 {
			t.Errorf("got %v, want 0", got)
		}
		e.awaitJobs(live, jobsOfB...)
	})
	t.Run("0 from an untyped client is 0, absent is 1", func(t *testing.T) {
		e := newEnv(t, released)
		for value, want := range map[any]int64{int64(0): 0, nil: 1} {
			job := map[string]any{"name": "w", "template": map[string]any{"spec": map[string]any{"template": map[string]any{
				"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "busybox"}}},
			}}}}
			if value != nil {
				job["replicas"] = value
			}
			got, err := e.dynamic().Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
				"metadata": map[string]any{"generateName": "set-"},
				"spec":     map[string]any{"replicatedJobs": []any{job}},
			}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			jobs, _, err := unstructured.NestedSlice(got.Object, "spec", "replicatedJobs")
			if err != nil {
				t.Fatal(err)
			}
			if replicas := jobs[0].(map[string]any)["replicas"]; replicas != want {
				t.Errorf("sent %v: got %v, want %d", value, replicas, want)
			}
		}
	})
}

func replicas(n int32) func(*jobSet) {
	return func(js *jobSet) { js.Spec.ReplicatedJobs[0].Replicas = ptr.To(n) }
}
