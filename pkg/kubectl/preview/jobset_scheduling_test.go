// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// trainGroups is the hash in the names of the groups of the set train.
const trainGroups = "9820341ee6"

func asGang(js *jobsetv1alpha2.JobSet) {
	js.Spec.Scheduling = &jobsetv1alpha2.JobSetSchedulingConfiguration{}
}

// inGroups has the pods of each Job of w as a gang of one pod or more, or all together scheduled one by one.
func inGroups(perJob bool) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		asGang(js)
		entry := jobsetv1alpha2.ReplicatedJobScheduling{TargetReplicatedJobs: []string{"w"}}
		if perJob {
			entry.Job = &jobsetv1alpha2.JobScheduling{SchedulingPolicy: &jobsetv1alpha2.SchedulingPolicy{Gang: &jobsetv1alpha2.GangSchedulingPolicy{MinCount: ptr.To[int32](1)}}}
		} else {
			entry.SchedulingPolicy = &jobsetv1alpha2.SchedulingPolicy{Basic: &jobsetv1alpha2.BasicSchedulingPolicy{}}
		}
		js.Spec.Scheduling.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJobScheduling{entry}
	}
}

func gangAPI(versions ...string) map[string][]string {
	out := map[string][]string{}
	for _, version := range versions {
		out["/apis/scheduling.k8s.io/"+version] = []string{"podgroups", "podgroups/status", "workloads"}
	}
	return out
}

func TestSchedulingInPreviews(t *testing.T) {
	whole := []SchedulingGroup{{Name: "train-" + trainGroups, ReplicatedJobs: []string{"w"}, Pods: 6, MinCount: ptr.To[int64](6)}}
	var perJob []SchedulingGroup
	for i := range 3 {
		perJob = append(perJob, SchedulingGroup{
			Name: fmt.Sprintf("train-w-%d-%s", i, trainGroups), ReplicatedJobs: []string{"w"}, Job: fmt.Sprintf("train-w-%d", i), Pods: 2, MinCount: ptr.To[int64](1),
		})
	}
	none := "the cluster serves no Workloads and PodGroups of scheduling.k8s.io, so that the Jobs wait for them, unless the feature gate JobSetWorkloadAwareSchedulingAPI of the " +
		"controller is off, or its --gang-scheduling-provider names another scheduler"
	later := func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }
	others := func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/other") }
	empty := func(js *jobsetv1alpha2.JobSet) { js.Spec.ReplicatedJobs[0].Replicas = ptr.To[int32](0) }
	for name, tc := range map[string]struct {
		change    []func(*jobsetv1alpha2.JobSet)
		served    map[string][]string
		notServed error
		want      *Scheduling
	}{
		"not asked for":      {served: gangAPI("v1beta1")},
		"a gang":             {change: []func(*jobsetv1alpha2.JobSet){asGang}, served: gangAPI("v1alpha2", "v1beta1"), want: &Scheduling{API: "scheduling.k8s.io/v1beta1", PodGroups: whole}},
		"a gang in 1.36":     {change: []func(*jobsetv1alpha2.JobSet){asGang}, served: gangAPI("v1alpha2"), want: &Scheduling{API: "scheduling.k8s.io/v1alpha2", PodGroups: whole}},
		"a gang of each Job": {change: []func(*jobsetv1alpha2.JobSet){inGroups(true)}, served: gangAPI("v1alpha3"), want: &Scheduling{API: "scheduling.k8s.io/v1alpha3", PodGroups: perJob}},
		"no gang": {change: []func(*jobsetv1alpha2.JobSet){inGroups(false)}, served: gangAPI("v1alpha3"), want: &Scheduling{API: "scheduling.k8s.io/v1alpha3", PodGroups: []SchedulingGroup{
			{Name: "train-w-" + trainGroups, ReplicatedJobs: []string{"w"}, Pods: 6},
		}}},
		"no API": {change: []func(*jobsetv1alpha2.JobSet){asGang}, want: &Scheduling{PodGroups: whole, Message: none}},
		"an API without it": {
			change: []func(*jobsetv1alpha2.JobSet){asGang}, served: map[string][]string{"/apis/scheduling.k8s.io/v1alpha2": {"workloads"}}, want: &Scheduling{PodGroups: whole, Message: none},
		},
		"the API is not known": {change: []func(*jobsetv1alpha2.JobSet){asGang}, notServed: errors.New("forbidden: User \"u\" cannot get path"), want: &Scheduling{
			PodGroups: whole, Message: "whether the cluster serves Workloads and PodGroups of scheduling.k8s.io is not known: forbidden: User \"u\" cannot get path",
		}},
		"the set is suspended": {change: []func(*jobsetv1alpha2.JobSet){asGang, later}, served: gangAPI("v1beta1"), want: &Scheduling{
			API: "scheduling.k8s.io/v1beta1", PodGroups: whole, Message: "the Workload and the PodGroups are created when the set is resumed",
		}},
		"of another controller": {change: []func(*jobsetv1alpha2.JobSet){asGang, others}, served: gangAPI("v1beta1")},
		"without pods":          {change: []func(*jobsetv1alpha2.JobSet){asGang, empty}, served: gangAPI("v1beta1")},
	} {
		t.Run(name, func(t *testing.T) {
			set := previewOne(t, &answers{sets: trainSet(tc.change...), served: tc.served, notServed: tc.notServed})
			if tc.want != nil {
				tc.want.Workload = "train-" + trainGroups
			}
			if diff := cmp.Diff(tc.want, set.Scheduling); diff != "" {
				t.Errorf("scheduling (-want +got):\n%s", diff)
			}
			notes := strings.Join(set.Notes, "\n")
			if tc.want != nil && tc.want.Message != "" && !strings.Contains(notes, "spec.scheduling: "+tc.want.Message) {
				t.Errorf("the notes are %q", set.Notes)
			}
			if set.Refused() {
				t.Error("the set counts as refused")
			}
		})
	}
}

// TestRenderScheduling shows the groups of pods on terminals of several widths.
func TestRenderScheduling(t *testing.T) {
	for name, change := range map[string]func(*jobsetv1alpha2.JobSet){"gang": asGang, "gangs": inGroups(true), "basic": inGroups(false)} {
		set := previewOne(t, &answers{sets: trainSet(change), served: gangAPI("v1beta1")})
		for _, width := range []int{0, 60, 100, 200} {
			golden.Compare(t, fmt.Sprintf("scheduling-%s-%d.txt", name, width), strings.Join(set.Lines(cli.Terminal{Width: width}), "\n")+"\n")
		}
	}
}
