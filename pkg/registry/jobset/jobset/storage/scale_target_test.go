// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// TestWhatCannotBeScaledIsInvalid: kubectl scale repeats a Conflict for five minutes, so that a set which has no scale must
// not be answered with one.
func TestWhatCannotBeScaledIsInvalid(t *testing.T) {
	const key = "jobset-apiserver.io/scale-replicated-job"
	elastic := func(js *jobset.JobSet) {
		for i := range js.Spec.ReplicatedJobs[:2] {
			job := &js.Spec.ReplicatedJobs[i].Template.Spec
			job.CompletionMode, job.Parallelism, job.Completions = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](2), ptr.To[int32](2)
		}
	}
	names := func(rj string) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) { elastic(js); js.Annotations = map[string]string{key: rj} }
	}
	cases := map[string]struct {
		change func(*jobset.JobSet)
		off    bool
		want   string
	}{
		"the gate is off": {change: elastic, off: true, want: "spec.replicatedJobs: Forbidden: cannot be scaled while the feature gate ElasticJobSet is off; ask an administrator of the cluster to turn it on"},
		"none is elastic": {change: func(*jobset.JobSet) {}, want: "spec.replicatedJobs: Forbidden: cannot be scaled because none is elastic; recreate the JobSet with " +
			"completionMode Indexed and completions equal to parallelism in the replicatedJob to scale"},
		"several are elastic": {change: elastic, want: "metadata.annotations[" + key + "]: Required value: must name one of the elastic replicatedJobs: workers, launcher; " +
			"set it with `kubectl annotate jobset train " + key + "=workers`, or change parallelism and completions of each with `kubectl edit jobset train`"},
		"one that is not elastic": {change: names("fixed"), want: "metadata.annotations[" + key + `]: Invalid value: "fixed": must name one of the elastic replicatedJobs: workers, launcher`},
		"one that does not exist": {change: names("other"), want: "metadata.annotations[" + key + `]: Invalid value: "other": must name one of the elastic replicatedJobs: workers, launcher`},
		"one when none is elastic": {change: func(js *jobset.JobSet) { js.Annotations = map[string]string{key: "workers"} },
			want: "spec.replicatedJobs: Forbidden: cannot be scaled because none is elastic; recreate the JobSet with " +
				"completionMode Indexed and completions equal to parallelism in the replicatedJob to scale"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := builders.Hub("train", builders.WithHubJobs("workers", 1, 2), builders.WithHubJobs("launcher", 1, 2), builders.WithHubJobs("fixed", 1, 2))
			for i := range js.Spec.ReplicatedJobs {
				js.Spec.ReplicatedJobs[i].Template.Spec.Completions = nil
			}
			tc.change(js)
			_, err := scaleTarget(js, !tc.off)
			if !apierrors.IsInvalid(err) {
				t.Fatalf("got %v, want an answer that clients do not repeat", err)
			}
			if diff := cmp.Diff(`JobSet.jobset.x-k8s.io "train" is invalid: `+tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
