// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func TestChildrenAreThoseThatDecideCreates(t *testing.T) {
	gates := gates.Gates{ExecutionAttemptsTracking: true}
	claims := func(js *jobsetv1alpha2.JobSet) {
		js.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{
			Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		}}
	}
	network := func(js *jobsetv1alpha2.JobSet) {
		js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true)}
	}
	js := builders.JobSet("train", claims, network, builders.WithJobs("driver", 1, 1), builders.WithJobs("none", 0, 1), builders.WithJobs("workers", 3, 2))

	// An execution must be on record before there are Jobs of it.
	js.Status.ExecutionAttempts = ptr.To[int32](0)
	plan := Decide(Observed{JobSet: js, Gates: gates, Restored: hostplan.None[Restored]()})
	want := Children{Service: plan.CreateService, Claims: plan.CreateClaims, Jobs: []*batchv1.Job{plan.CreateJobs[0], nil, plan.CreateJobs[1]}}
	if diff := cmp.Diff(want, ChildrenOf(js, gates)); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}

func TestChildrenDoNotWaitForDependencies(t *testing.T) {
	after := func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.DependsOn = []jobsetv1alpha2.DependsOn{{Name: "driver", Status: jobsetv1alpha2.DependencyComplete}}
	}
	js := builders.JobSet("train", builders.WithJobs("driver", 1, 1), builders.WithJobs("workers", 3, 2, after))
	var names []string
	for _, job := range ChildrenOf(js, gates.Gates{}).Jobs {
		names = append(names, job.Name)
	}
	if diff := cmp.Diff([]string{"train-driver-0", "train-workers-0"}, names); diff != "" {
		t.Errorf("names of the first Jobs (-want +got):\n%s", diff)
	}
}

func TestSetOfAnotherControllerHasNoChildren(t *testing.T) {
	managed := func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/other") }
	js := builders.JobSet("train", managed, builders.WithJobs("workers", 3, 2))
	if diff := cmp.Diff(Children{Jobs: []*batchv1.Job{nil}}, ChildrenOf(js, gates.Gates{})); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}
