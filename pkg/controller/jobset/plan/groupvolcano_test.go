// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// oneCPU makes each pod of a replicatedJob request a CPU, and its Jobs have 4 pods.
func oneCPU(rj *jobsetv1alpha2.ReplicatedJob) {
	rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = ptr.To[int32](4), ptr.To[int32](4)
	rj.Template.Spec.Template.Spec.PriorityClassName = "high"
	rj.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}}}
}

func TestGroupsOfVolcano(t *testing.T) {
	js := newSet(with("w", 2, oneCPU), scheduling(func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
		s.SchedulingPolicy = &jobsetv1alpha2.SchedulingPolicy{Gang: &jobsetv1alpha2.GangSchedulingPolicy{MinCount: ptr.To[int32](6)}}
	}))
	js.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": "research", "volcano.sh/preemptable": "true", "note": "not copied"}
	o := observe(js)
	o.Grouped = &Grouped{API: GroupsVolcano, Volcano: true}
	p := Decide(o)
	diff(t, "groups", "PodGroup/js", changedGroups(p.Groups))
	group := p.Groups.Create[0]
	diff(t, "version", "scheduling.volcano.sh/v1beta1", group.GetAPIVersion())
	diff(t, "annotations", map[string]string{"volcano.sh/preemptable": "true"}, group.GetAnnotations())
	want := map[string]any{"minMember": int64(6), "queue": "research", "minResources": map[string]any{"cpu": "6"}, "priorityClassName": "high"}
	if d := cmp.Diff(want, group.Object["spec"]); d != "" {
		t.Error("spec (-want +got):\n" + d)
	}

	group = group.DeepCopy()
	group.SetUID("uid")
	o.Grouped.Objects = append(o.Grouped.Objects, group)
	p = Decide(o)
	diff(t, "groups", "", changedGroups(p.Groups))
	diff(t, "Jobs", 2, len(p.CreateJobs))
	for _, job := range p.CreateJobs {
		diff(t, "group of the pods", "js-"+hash, job.Spec.Template.Annotations["scheduling.k8s.io/group-name"])
		if job.Spec.Template.Spec.SchedulingGroup != nil || job.Annotations[GroupTemplateKey] != "" {
			t.Errorf("%s is also in a group of Kubernetes", job.Name)
		}
	}

	group.Object["spec"].(map[string]any)["minMember"] = int64(1)
	diff(t, "somebody changed the number", "-PodGroup/js", changedGroups(Decide(o).Groups))
}

// A Job that was created without a group gets it when it is resumed.
func TestResumedJobsAreInGroupOfVolcano(t *testing.T) {
	js := newSet(with("w", 1), scheduling())
	o := observe(js, jobNamed("w", 0, jobIsSuspended))
	o.Grouped = &Grouped{API: GroupsVolcano, Volcano: true}
	o.Grouped.Objects = Decide(o).Groups.Create
	p := Decide(o)
	diff(t, "deletes", 0, len(p.DeleteJobs))
	if len(p.PatchJobs) != 1 || p.PatchJobs[0].Directives == nil || p.PatchJobs[0].Directives.Annotations["scheduling.k8s.io/group-name"] != "js-"+hash {
		t.Errorf("patches %+v", p.PatchJobs)
	}
}

func TestVolcanoCannot(t *testing.T) {
	basic := func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
		s.SchedulingPolicy = &jobsetv1alpha2.SchedulingPolicy{Basic: &jobsetv1alpha2.BasicSchedulingPolicy{}}
	}
	claims := func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
		s.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJobScheduling{{
			TargetReplicatedJobs: []string{"w"}, ResourceClaims: []jobsetv1alpha2.SchedulingResourceClaim{{Name: "c", ResourceClaimName: ptr.To("c")}},
		}}
	}
	running := []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)}
	for name, tc := range map[string]struct {
		scheduling func(*jobsetv1alpha2.JobSetSchedulingConfiguration)
		jobs       []*batchv1.Job
		absent     bool
		want       string
	}{
		"no Volcano":            {absent: true, want: noVolcano},
		"constraints":           {scheduling: inRacks, want: "schedulingConstraints" + volcanoLacks},
		"a disruption mode":     {scheduling: allOrNone, want: "disruptionMode" + volcanoLacks},
		"claims":                {scheduling: claims, want: "resourceClaims" + volcanoLacks},
		"all Jobs run":          {scheduling: inRacks, jobs: running},
		"a gang":                {},
		"pods that are no gang": {scheduling: basic},
	} {
		t.Run(name, func(t *testing.T) {
			change := tc.scheduling
			if change == nil {
				change = func(*jobsetv1alpha2.JobSetSchedulingConfiguration) {}
			}
			o := observe(newSet(with("w", 2), scheduling(change)), tc.jobs...)
			o.Grouped = &Grouped{API: GroupsVolcano, Volcano: true, Absent: tc.absent}
			if tc.absent {
				o.Grouped.API = ""
			}
			got := ""
			if r := Decide(o).Groups.Refusal; r != nil {
				got = r.Message
				diff(t, "reason", "NotSupported", r.Reason)
			}
			diff(t, "refusal", tc.want, got)
		})
	}
}
