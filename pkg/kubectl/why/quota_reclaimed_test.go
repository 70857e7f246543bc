// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestQuotaReclaimed(t *testing.T) {
	const note = "Kueue holds no quota for 2 pods, which had succeeded before a restart, cannot reserve it again, and does not suspend the set any more. " +
		"kubectl -n team delete workload jobset-train-1a2b3 makes Kueue admit the set again: the set is suspended until there is quota for all of its pods"
	reclaimed := func(pods int64) func(*Evidence) {
		return func(e *Evidence) {
			e.Kueue.Workload = &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "jobset-train-1a2b3"},
				"status":   map[string]any{"reclaimablePods": []any{map[string]any{"name": "workers", "count": pods}}},
			}}
		}
	}
	succeeded := func(jobs, parallelism int32) func(*Evidence) {
		return func(e *Evidence) {
			e.JobSet.Status.ReplicatedJobsStatus[0].Succeeded = jobs
			spec := &e.JobSet.Spec.ReplicatedJobs[0].Template.Spec
			spec.Parallelism, spec.Completions = ptr.To(parallelism), ptr.To[int32](2)
		}
	}
	for name, tc := range map[string]struct {
		evidence *Evidence
		want     []string
	}{
		"no Workload":                    {healthy(), nil},
		"Jobs have succeeded":            {healthy(reclaimed(2), succeeded(1, 2)), nil},
		"no more pods than completions":  {healthy(reclaimed(2), succeeded(1, 5)), nil},
		"they run again after a restart": {healthy(reclaimed(2), succeeded(0, 2)), []string{note}},
		"one of two runs again":          {healthy(reclaimed(4), succeeded(1, 2)), []string{note}},
		"the set has completed": {healthy(reclaimed(2), status(func(s *jobsetv1alpha2.JobSetStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: string(jobsetv1alpha2.JobSetCompleted), Status: metav1.ConditionTrue})
		})), nil},
		"a replicatedJob that is not known": {healthy(reclaimed(2), func(e *Evidence) { e.JobSet.Status.ReplicatedJobsStatus = nil }), []string{note}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, quotaReclaimed(tc.evidence)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
