// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func withHostnames(js *jobsetv1alpha2.JobSet) {
	js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true)}
}

func TestNamesOfReplicatedJob(t *testing.T) {
	template := func(change func(*batchv1.JobSpec)) func(*jobsetv1alpha2.ReplicatedJob) {
		return func(rj *jobsetv1alpha2.ReplicatedJob) { change(&rj.Template.Spec) }
	}
	for name, tc := range map[string]struct {
		js   *jobsetv1alpha2.JobSet
		want ReplicatedJob
	}{
		"one Job of one pod": {
			js:   builders.JobSet("train", withHostnames, builders.WithJobs("w", 1, 1)),
			want: ReplicatedJob{Name: "w", Jobs: 1, JobNames: "train-w-0", Pods: 1, PodNames: "train-w-0-0-xxxxx", HostNames: "train-w-0-0.train"},
		},
		"many Jobs of many pods": {
			js:   builders.JobSet("train", withHostnames, builders.WithJobs("w", 400, 8)),
			want: ReplicatedJob{Name: "w", Jobs: 400, JobNames: "train-w-[0-399]", Pods: 3200, PodNames: "train-w-[0-399]-[0-7]-xxxxx", HostNames: "train-w-[0-399]-[0-7].train"},
		},
		"no host names": {
			js:   builders.JobSet("train", builders.WithJobs("w", 2, 1)),
			want: ReplicatedJob{Name: "w", Jobs: 2, JobNames: "train-w-[0-1]", Pods: 2, PodNames: "train-w-[0-1]-0-xxxxx"},
		},
		"a subdomain of its own": {
			js: builders.JobSet("train", withHostnames, func(js *jobsetv1alpha2.JobSet) { js.Spec.Network.Subdomain = "net" }, builders.WithJobs("w", 1, 1)),
			want: ReplicatedJob{
				Name: "w", Jobs: 1, JobNames: "train-w-0", Pods: 1, PodNames: "train-w-0-0-xxxxx", HostNames: "train-w-0-0.net",
			},
		},
		"fewer pods at a time than in all": {
			js:   builders.JobSet("train", builders.WithJobs("w", 1, 9, template(func(s *batchv1.JobSpec) { s.Parallelism = ptr.To[int32](3) }))),
			want: ReplicatedJob{Name: "w", Jobs: 1, JobNames: "train-w-0", Pods: 3, PodNames: "train-w-0-[0-8]-xxxxx"},
		},
		"pods without an index have no host names": {
			js: builders.JobSet("train", withHostnames, builders.WithJobs("w", 1, 4, template(func(s *batchv1.JobSpec) {
				s.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
			}))),
			want: ReplicatedJob{Name: "w", Jobs: 1, JobNames: "train-w-0", Pods: 4, PodNames: "train-w-0-xxxxx"},
		},
		"no pods": {
			js:   builders.JobSet("train", builders.WithJobs("w", 2, 4, template(func(s *batchv1.JobSpec) { s.Parallelism = ptr.To[int32](0) }))),
			want: ReplicatedJob{Name: "w", Jobs: 2, JobNames: "train-w-[0-1]"},
		},
		"no Jobs": {
			js:   builders.JobSet("train", builders.WithJobs("w", 0, 4)),
			want: ReplicatedJob{Name: "w"},
		},
		"what it waits for": {
			js: builders.JobSet("train", builders.WithJobs("w", 0, 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
				rj.DependsOn = []jobsetv1alpha2.DependsOn{{Name: "init", Status: jobsetv1alpha2.DependencyComplete}}
			})),
			want: ReplicatedJob{Name: "w", After: []string{"init:Complete"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := nameReplicatedJob(tc.js, &tc.js.Spec.ReplicatedJobs[0], plan.ChildrenOf(tc.js, gates.Gates{}).Jobs[0])
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTakenNames(t *testing.T) {
	js := builders.JobSet("train", builders.WithJobs("w", 100, 1))
	for name, tc := range map[string]struct {
		exist []string
		want  string
	}{
		"none":                     {exist: []string{"train-v-0", "train-w", "train-w-100"}},
		"one":                      {exist: []string{"train-w-7"}, want: "train-w-7"},
		"some in a row and others": {exist: []string{"train-w-1", "train-w-2", "train-w-3", "train-w-9"}, want: "train-w-[1-3,9]"},
		"too many ranges to be told": {
			exist: []string{"train-w-0", "train-w-2", "train-w-4", "train-w-6", "train-w-8", "train-w-10", "train-w-12", "train-w-14", "train-w-16", "train-w-18"},
			want:  "train-w-[0,2,4,6,8,10,12,14,...]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := taken(js, &js.Spec.ReplicatedJobs[0], sets.New(tc.exist...).Has); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
