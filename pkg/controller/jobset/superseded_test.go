// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// TestSetChangesWhileJobsAreCreated changes a set in the cache once the second of 100 Jobs is created.
func TestSetChangesWhileJobsAreCreated(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(js *jobsetv1alpha2.JobSet)
		want   int
	}{
		"it is deleted in the foreground": {func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = new(metav1.Now()) }, 2},
		"another set has the name":        {func(js *jobsetv1alpha2.JobSet) { js.UID = "another" }, 2},
		"it is suspended": {func(js *jobsetv1alpha2.JobSet) {
			js.Generation++
			js.Spec.Suspend = ptr.To(true)
		}, 2},
		"it is restarted": {func(js *jobsetv1alpha2.JobSet) { js.Status.Restarts++ }, 2},
		"one of its Jobs is restarted": {func(js *jobsetv1alpha2.JobSet) {
			js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "a", JobRestarts: []int32{1}}}
		}, 2},
		"it has failed": {func(js *jobsetv1alpha2.JobSet) { js.Status.TerminalState = string(jobsetv1alpha2.JobSetFailed) }, 2},
		"its counts change": {func(js *jobsetv1alpha2.JobSet) {
			js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "a", Active: 1}}
		}, 100},
		"it gets a label": {func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{"a": "b"} }, 100},
	} {
		t.Run(name, func(t *testing.T) {
			set := sizedSet(100)
			var r *passes
			r = newPasses(t, set, func(string) error {
				if len(r.asked) == 2 {
					next := set.DeepCopy()
					next.ResourceVersion = "2"
					tc.change(next)
					return r.caches.jobSets.GetIndexer().Update(next)
				}
				return nil
			})
			if asked := r.pass(t); len(asked) != tc.want {
				t.Errorf("%d Jobs were created, want %d", len(asked), tc.want)
			}
		})
	}
}

// TestSetIsGoneWhileAJobIsDeleted has a set that is gone once a Job of an earlier attempt was deleted.
func TestSetIsGoneWhileAJobIsDeleted(t *testing.T) {
	set := sizedSet(1)
	r := newPasses(t, set, func(string) error { return nil })
	r.Loop.Kind = decided{r.Loop.Kind, plan.Plan{
		DeleteJobs: []plan.JobRef{{Name: "old", UID: "old"}}, PatchJobs: []plan.JobPatch{{JobRef: plan.JobRef{Name: "js-a-1"}, Suspend: new(false)}},
		CreateService: service(), CreateClaims: []*corev1.PersistentVolumeClaim{claim("a")}, CreateJobs: []*batchv1.Job{newJob("js-a-0", set)},
	}}
	r.kube.PrependReactor("delete", "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, r.caches.jobSets.GetIndexer().Delete(set)
	})
	r.pass(t)
	diff(t, "requests", []string{"delete jobs old"}, r.requests())
}

// decided is the kind with one plan for all that is observed.
type decided struct {
	Kind
	p plan.Plan
}

// Decide implements Kind.
func (d decided) Decide(plan.Observed) plan.Plan { return d.p }
