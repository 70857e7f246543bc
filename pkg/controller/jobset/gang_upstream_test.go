// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetgang "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// TestWorkloadAwareScheduling is row 12 of upstream's tests with real clusters, for spec.scheduling: a plain set
// completes, a gang of 4 pods is known to the scheduler before the first of them exists, and a topology constraint is
// one of all pods. What a scheduler makes of that is tested with a real one.
func TestWorkloadAwareScheduling(t *testing.T) {
	gang := map[string]any{"gang": map[string]any{"minCount": int64(4)}}
	for name, tc := range map[string]struct {
		scheduling *jobsetv1alpha2.JobSetSchedulingConfiguration
		// want is the spec of the PodGroup; nil for none.
		want map[string]any
	}{
		"plain":     {},
		"gang of 4": {&jobsetv1alpha2.JobSetSchedulingConfiguration{}, map[string]any{"schedulingPolicy": gang}},
		"one rack": {
			&jobsetv1alpha2.JobSetSchedulingConfiguration{SchedulingConstraints: &jobsetv1alpha2.SchedulingConstraints{Topology: []jobsetv1alpha2.TopologyConstraint{{Key: "rack"}}}},
			map[string]any{"schedulingPolicy": gang, "schedulingConstraints": map[string]any{"topology": []any{map[string]any{"key": "rack"}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newGroupRig(t, withGroups, jobsetgang.V1alpha2)
				js := r.set(t)
				js.Spec.Scheduling = tc.scheduling
				js.Spec.ReplicatedJobs[0].Template.Spec.Parallelism, js.Spec.ReplicatedJobs[0].Template.Spec.Completions = ptr.To[int32](2), ptr.To[int32](2)
				if _, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Update(t.Context(), js, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				r.kube.PrependReactor("create", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
					job := action.(clientgotesting.CreateAction).GetObject().(*batchv1.Job)
					if problem := r.groupProblem(job, tc.want); problem != "" {
						t.Errorf("Job %s: %s", job.Name, problem)
					}
					return false, nil, nil
				})
				r.run(t)
				eventually(t, "the Jobs exist", func() bool { return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") })
				r.finish(t, "js-w-0")
				r.finish(t, "js-w-1")
				eventually(t, "the set has completed, and no group is left", func() bool {
					_, err := r.dynamic.Resource(podGroups).Namespace("ns").Get(t.Context(), "js"+groupsHash, metav1.GetOptions{})
					return r.set(t).Status.TerminalState == string(jobsetv1alpha2.JobSetCompleted) && apierrors.IsNotFound(err)
				})
			})
		})
	}
}

// groupProblem returns what is wrong with the group of a Job that is being created; empty if it has the wanted one, and that exists.
func (r *rig) groupProblem(job *batchv1.Job, want map[string]any) string {
	group := job.Spec.Template.Spec.SchedulingGroup
	if want == nil {
		if group != nil {
			return fmt.Sprintf("its pods are in the group %v, want none", group)
		}
		return ""
	}
	if group == nil || group.PodGroupName == nil {
		return "its pods are in no group"
	}
	object, err := r.dynamic.Tracker().Get(podGroups, "ns", *group.PodGroupName)
	if err != nil {
		return err.Error()
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err.Error()
	}
	spec, _ := content["spec"].(map[string]any)
	delete(spec, "podGroupTemplateRef")
	return cmp.Diff(want, spec)
}
