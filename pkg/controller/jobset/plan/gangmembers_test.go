// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
	"github.com/jobset-apiserver/jobset-apiserver/test/podgroupkinds"
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
	o.Grouped = &gang.Observed{API: gang.Volcano, Provider: gangplan.Volcano}
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
		if job.Spec.Template.Spec.SchedulingGroup != nil || job.Annotations[gang.TemplateKey] != "" {
			t.Errorf("%s is also in a group of Kubernetes", job.Name)
		}
	}

	group.Object["spec"].(map[string]any)["minMember"] = int64(1)
	diff(t, "somebody changed the number", "-PodGroup/js", changedGroups(Decide(o).Groups))
}

func TestGroupsOfCoscheduling(t *testing.T) {
	js := newSet(with("w", 2, oneCPU), scheduling(entries(entry(true, "w"))))
	js.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": "research", "volcano.sh/preemptable": "true"}
	o := observe(js)
	o.Grouped = &gang.Observed{API: gang.Coscheduling, Provider: gangplan.Coscheduling}
	p := Decide(o)
	diff(t, "groups", "PodGroup/js-w-0 PodGroup/js-w-1", changedGroups(p.Groups))
	for _, group := range p.Groups.Create {
		diff(t, "version", "scheduling.x-k8s.io/v1alpha1", group.GetAPIVersion())
		diff(t, "annotations", 0, len(group.GetAnnotations()))
		diff(t, "owner", "JobSet js", group.GetOwnerReferences()[0].Kind+" "+group.GetOwnerReferences()[0].Name)
		if d := cmp.Diff(map[string]any{"minMember": int64(4), "minResources": map[string]any{"cpu": "4"}}, group.Object["spec"]); d != "" {
			t.Error("spec (-want +got):\n" + d)
		}
	}
	o.Grouped.Objects = p.Groups.Create
	p = Decide(o)
	diff(t, "groups", "", changedGroups(p.Groups))
	diff(t, "Jobs", 2, len(p.CreateJobs))
	for _, job := range p.CreateJobs {
		name := job.Name + "-" + hash
		diff(t, "group of the pods", name, job.Spec.Template.Labels["scheduling.x-k8s.io/pod-group"])
		if template := job.Spec.Template; template.Spec.SchedulingGroup != nil || job.Annotations[gang.TemplateKey] != "" || template.Annotations["scheduling.k8s.io/group-name"] != "" {
			t.Errorf("%s is also in a group of another scheduler", job.Name)
		}
	}
}

// TestGroupsFitTheirKinds checks the PodGroups against the definitions of schedulers with an own kind.
func TestGroupsFitTheirKinds(t *testing.T) {
	basic := func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
		s.SchedulingPolicy = &jobsetv1alpha2.SchedulingPolicy{Basic: &jobsetv1alpha2.BasicSchedulingPolicy{}}
	}
	some := func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
		s.SchedulingPolicy = &jobsetv1alpha2.SchedulingPolicy{Gang: &jobsetv1alpha2.GangSchedulingPolicy{MinCount: ptr.To[int32](3)}}
	}
	long := strings.Repeat("w", 40)
	devices := func(rj *jobsetv1alpha2.ReplicatedJob) {
		oneCPU(rj)
		rj.Template.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
			"example.com/gpu": resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("1.5Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("1e9"),
		}
	}
	queued := func(js *jobsetv1alpha2.JobSet) {
		js.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": "research", "volcano.sh/preemptable": "true"}
	}
	for name, tc := range map[string]struct {
		set    []func(*jobsetv1alpha2.JobSet)
		groups int
	}{
		"a gang":                         {[]func(*jobsetv1alpha2.JobSet){with("w", 2, oneCPU), scheduling()}, 1},
		"a gang of some pods":            {[]func(*jobsetv1alpha2.JobSet){with("w", 2, oneCPU), scheduling(some)}, 1},
		"no gang":                        {[]func(*jobsetv1alpha2.JobSet){with("w", 2, oneCPU), scheduling(basic)}, 1},
		"without requests":               {[]func(*jobsetv1alpha2.JobSet){with("w", 2), scheduling()}, 1},
		"a group for each Job":           {[]func(*jobsetv1alpha2.JobSet){with("w", 2, devices), scheduling(entries(entry(true, "w"))), queued}, 2},
		"several groups":                 {[]func(*jobsetv1alpha2.JobSet){with("w", 2, devices), with("v", 1), scheduling(entries(entry(false, "v"), entry(false, "w")))}, 2},
		"in order":                       {[]func(*jobsetv1alpha2.JobSet){with("w", 2, oneCPU), with("v", 1), scheduling(), inOrder}, 2},
		"names that are cut to fit":      {[]func(*jobsetv1alpha2.JobSet){with(long, 2), with(long+"v", 1), scheduling(entries(entry(true, long), entry(false, long+"v")))}, 3},
		"very many pods of one CPU":      {[]func(*jobsetv1alpha2.JobSet){with("w", 1, manyPods), scheduling()}, 1},
		"replicatedJobs of no pods, too": {[]func(*jobsetv1alpha2.JobSet){with("w", 1, oneCPU), with("v", 0, devices), scheduling()}, 1},
	} {
		for _, api := range []gang.API{gang.Volcano, gang.Coscheduling} {
			t.Run(name+" of "+string(api), func(t *testing.T) {
				o := observe(newSet(tc.set...))
				o.Grouped = &gang.Observed{API: api, Provider: api.Provider()}
				groups := Decide(o).Groups.Create
				diff(t, "groups", tc.groups, len(groups))
				for _, group := range groups {
					if err := podgroupkinds.Check(group); err != nil {
						t.Errorf("%s: %v", group.GetName(), err)
					}
				}
			})
		}
	}
}

// manyPods gives the one Job as many pods as a Job can have.
func manyPods(rj *jobsetv1alpha2.ReplicatedJob) {
	oneCPU(rj)
	rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = ptr.To[int32](math.MaxInt32), ptr.To[int32](math.MaxInt32)
}

// A Job that was created without a group gets it when it is resumed.
func TestResumedJobsAreInTheirGroup(t *testing.T) {
	for api, group := range map[gang.API]func(*Directives) string{
		gang.Volcano:      func(d *Directives) string { return d.Annotations["scheduling.k8s.io/group-name"] },
		gang.Coscheduling: func(d *Directives) string { return d.Labels["scheduling.x-k8s.io/pod-group"] },
	} {
		js := newSet(with("w", 1), scheduling())
		o := observe(js, jobNamed("w", 0, jobIsSuspended))
		o.Grouped = &gang.Observed{API: api, Provider: api.Provider()}
		o.Grouped.Objects = Decide(o).Groups.Create
		p := Decide(o)
		diff(t, "deletes", 0, len(p.DeleteJobs))
		if len(p.PatchJobs) != 1 || p.PatchJobs[0].Directives == nil || group(p.PatchJobs[0].Directives) != "js-"+hash {
			t.Errorf("%s: patches %+v", api, p.PatchJobs)
		}
	}
}

func TestMembersCannot(t *testing.T) {
	const (
		noVolcano = "the cluster serves no PodGroups of scheduling.volcano.sh/v1beta1; install Volcano, or start jobset-controller without " +
			"--gang-scheduling-provider=volcano; or suspend the JobSet and remove spec.scheduling"
		noCoscheduling = "the cluster serves no PodGroups of scheduling.x-k8s.io/v1alpha1; install a scheduler with the coscheduling plugin, and its PodGroups, or " +
			"start jobset-controller without --gang-scheduling-provider=coscheduling; or suspend the JobSet and remove spec.scheduling"
		volcanoLacks = " cannot be asked of the PodGroups of Volcano; suspend the JobSet and remove it from spec.scheduling, or start jobset-controller without " +
			"--gang-scheduling-provider=volcano"
		coschedulingLacks = " cannot be asked of the PodGroups of the coscheduling plugin; suspend the JobSet and remove it from spec.scheduling, or start " +
			"jobset-controller without --gang-scheduling-provider=coscheduling"
	)
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
		api        gang.API
		scheduling func(*jobsetv1alpha2.JobSetSchedulingConfiguration)
		jobs       []*batchv1.Job
		absent     bool
		want       string
	}{
		"no Volcano":                     {api: gang.Volcano, absent: true, want: noVolcano},
		"no coscheduling":                {api: gang.Coscheduling, absent: true, want: noCoscheduling},
		"constraints":                    {api: gang.Volcano, scheduling: inRacks, want: "schedulingConstraints" + volcanoLacks},
		"constraints, coscheduling":      {api: gang.Coscheduling, scheduling: inRacks, want: "schedulingConstraints" + coschedulingLacks},
		"a disruption mode":              {api: gang.Volcano, scheduling: allOrNone, want: "disruptionMode" + volcanoLacks},
		"claims":                         {api: gang.Volcano, scheduling: claims, want: "resourceClaims" + volcanoLacks},
		"all Jobs run":                   {api: gang.Volcano, scheduling: inRacks, jobs: running},
		"a gang":                         {api: gang.Volcano},
		"pods that are no gang":          {api: gang.Volcano, scheduling: basic},
		"no gang of coscheduling either": {api: gang.Coscheduling, scheduling: basic},
	} {
		t.Run(name, func(t *testing.T) {
			change := tc.scheduling
			if change == nil {
				change = func(*jobsetv1alpha2.JobSetSchedulingConfiguration) {}
			}
			o := observe(newSet(with("w", 2), scheduling(change)), tc.jobs...)
			o.Grouped = &gang.Observed{API: tc.api, Provider: tc.api.Provider(), Absent: tc.absent}
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
