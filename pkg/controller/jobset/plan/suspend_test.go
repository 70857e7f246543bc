// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// TestResume follows one Job whose set asks for label a=1, annotation b=2, a node selector, a toleration and a gate.
func TestResume(t *testing.T) {
	seconds := corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](30)}
	wants := with("w", 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
		template := &rj.Template.Spec.Template
		template.Labels = map[string]string{"a": "1"}
		template.Annotations = map[string]string{"b": "2"}
		template.Spec.NodeSelector = map[string]string{"zone": "z"}
		template.Spec.Tolerations = []corev1.Toleration{seconds}
		template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}}
	})
	// What the Job keeps of its own: identity, and what the Job API put there.
	own := map[string]string{
		"jobset.sigs.k8s.io/restart-attempt": "0", "batch.kubernetes.io/controller-uid": "u", "controller-uid": "u", "job-name": "js-w-0",
	}
	asWanted := func(job *batchv1.Job) {
		jobIsSuspended(job)
		template := &job.Spec.Template
		template.Labels = hostplan.Merged(own, map[string]string{"a": "1"})
		template.Annotations = map[string]string{"jobset.sigs.k8s.io/restart-attempt": "0", "b": "2"}
		template.Spec.NodeSelector = map[string]string{"zone": "z"}
		template.Spec.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](30)}}
		template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}}
	}
	outdated := func(job *batchv1.Job) {
		asWanted(job)
		job.Spec.Template.Labels["stale"] = "x"
		job.Spec.Template.Annotations["kueue.x-k8s.io/stale"] = "x"
		job.Spec.Template.Spec.NodeSelector = map[string]string{"flavor": "old"}
		job.Spec.Template.Spec.Tolerations = append(job.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "old"})
		job.Spec.Template.Spec.SchedulingGates = nil
	}
	startedBefore := func(job *batchv1.Job) { job.Status.StartTime = &before }
	withPods := func(job *batchv1.Job) { job.Status.Active = 1 }
	next := &Directives{
		Labels:          hostplan.Merged(own, map[string]string{"a": "1"}),
		Annotations:     map[string]string{"jobset.sigs.k8s.io/restart-attempt": "0", "b": "2"},
		OldLabels:       hostplan.Merged(own, map[string]string{"a": "1", "stale": "x"}),
		OldAnnotations:  map[string]string{"jobset.sigs.k8s.io/restart-attempt": "0", "b": "2", "kueue.x-k8s.io/stale": "x"},
		NodeSelector:    map[string]string{"zone": "z"},
		Tolerations:     []corev1.Toleration{seconds},
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "gate"}},
	}
	ref := JobRef{Name: "js-w-0", UID: "uid-js-w-0"}
	for name, tc := range map[string]struct {
		job  []func(*batchv1.Job)
		want []JobPatch
	}{
		"a Job with the right directives is resumed as it is": {
			job:  []func(*batchv1.Job){asWanted},
			want: []JobPatch{{JobRef: ref, ResourceVersion: "7", Suspend: ptr.To(false), Annotations: releasedAt5}},
		},
		"a Job with the right directives is resumed while its pods still end": {
			job:  []func(*batchv1.Job){asWanted, startedBefore, withPods},
			want: []JobPatch{{JobRef: ref, ResourceVersion: "7", Suspend: ptr.To(false), Annotations: releasedAt5}},
		},
		"directives are replaced, and what belongs to the Job stays": {
			job:  []func(*batchv1.Job){outdated},
			want: []JobPatch{{JobRef: ref, ResourceVersion: "7", Suspend: ptr.To(false), Annotations: releasedAt5, Directives: next}},
		},
		"the start time of a Job that ran before is cleared first": {
			job:  []func(*batchv1.Job){outdated, startedBefore},
			want: []JobPatch{{JobRef: ref, ResourceVersion: "7", Suspend: ptr.To(false), Annotations: releasedAt5, Directives: next, ClearStartTime: true}},
		},
		"other directives wait until the pods are gone": {
			job: []func(*batchv1.Job){outdated, startedBefore, withPods},
		},
		"a Job that was released before the set changed is resumed": {
			job:  []func(*batchv1.Job){asWanted, releasedAt("4")},
			want: []JobPatch{{JobRef: ref, ResourceVersion: "7", Suspend: ptr.To(false), Annotations: releasedAt5}},
		},
		"a Job that the set has suspended is resumed": {
			job:  []func(*batchv1.Job){asWanted, releasedAt("")},
			want: []JobPatch{{JobRef: ref, ResourceVersion: "7", Suspend: ptr.To(false), Annotations: releasedAt5}},
		},
		"a Job that was suspended after its release is left alone": {
			job: []func(*batchv1.Job){asWanted, releasedAt("5")},
		},
		"a Job without annotations gets them": {
			job:  []func(*batchv1.Job){asWanted, func(job *batchv1.Job) { job.Annotations = nil }},
			want: []JobPatch{{JobRef: ref, ResourceVersion: "7", Suspend: ptr.To(false), Annotations: releasedAt5, Unannotated: true}},
		},
		"a Job that runs is left alone": {
			job: []func(*batchv1.Job){outdated, func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(false) }},
		},
		"a Job that is being deleted is left alone": {
			job: []func(*batchv1.Job){outdated, terminating},
		},
		"a Job that has ended is left alone": {
			job: []func(*batchv1.Job){outdated, succeeded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(wants), jobNamed("w", 0, tc.job...))
			o.JobSet.Generation = 5
			o.JobSet.Spec.SuccessPolicy.TargetReplicatedJobs = []string{"other"}
			with("other", 1)(o.JobSet)
			o.Jobs = append(o.Jobs, jobNamed("other", 0))
			diff(t, "patches", tc.want, Decide(o).PatchJobs)
		})
	}
}

func TestResumeKeepsTheNodesOfTheNodeSelectorStrategy(t *testing.T) {
	js := newSet(with("w", 1), isSuspended)
	js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: "rack", jobsetv1alpha2.NodeSelectorStrategyKey: "true"}
	created := Decide(observe(js)).CreateJobs[0]
	js.Spec.Suspend, js.Generation = nil, 5
	want := []JobPatch{{JobRef: refTo(created), Suspend: ptr.To(false), Annotations: releasedAt5}}
	diff(t, "patches", want, Decide(observe(js, created)).PatchJobs)
}

func TestMissingKeysOfResumedJobs(t *testing.T) {
	for key, want := range map[string]bool{
		"jobset.sigs.k8s.io/job-index":         false,
		"alpha.jobset.sigs.k8s.io/x":           false,
		"batch.kubernetes.io/controller-uid":   false,
		"batch.kubernetes.io":                  false,
		"controller-uid":                       false,
		"job-name":                             false,
		"jobset.sigs.k8s.io/execution-attempt": true, // follows the set
		"jobset.sigs.k8s.io.example.com/x":     true,
		"batch.kubernetes.iox":                 true,
		"example.com/job-name":                 true,
		"kueue.x-k8s.io/podset":                true,
	} {
		diff(t, "whether "+key+" is compared", want, ComparedOnResume(key))
	}
}

func TestSuspend(t *testing.T) {
	patch := func(annotations map[string]string) []JobPatch {
		ref := JobRef{Name: "js-w-0", UID: "uid-js-w-0"}
		return []JobPatch{{JobRef: ref, ResourceVersion: "7", Suspend: ptr.To(true), Annotations: annotations}}
	}
	for name, tc := range map[string]struct {
		job  []func(*batchv1.Job)
		want []JobPatch
	}{
		"a Job that was released is marked as suspended with the set": {
			[]func(*batchv1.Job){releasedAt("5")}, patch(map[string]string{jobsetv1alpha2.ReleasedKey: ""})},
		"a Job without the mark gets none":                        {nil, patch(nil)},
		"a Job that somebody has suspended already is left alone": {[]func(*batchv1.Job){releasedAt("5"), jobIsSuspended}, nil},
		"a Job that is being deleted is left alone":               {[]func(*batchv1.Job){terminating}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, "patches", tc.want, Decide(observe(newSet(with("w", 1), isSuspended), jobNamed("w", 0, tc.job...))).PatchJobs)
		})
	}
}

func TestForeignSuspensionDoesNotKeepTheSetSuspended(t *testing.T) {
	js := newSet(with("w", 2), withCondition(jobsetv1alpha2.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended"))
	o := observe(js, jobNamed("w", 0), jobNamed("w", 1, jobIsSuspended, releasedAt("0")))
	want := summary{Conditions: []string{"Suspended=False ResumeJobs"}, Events: []string{"Normal ResumeJobs"}}
	diff(t, "plan", want, summarize(o, Decide(o)))
}

func TestResourcesOfResumedJobs(t *testing.T) {
	cpu := func(n string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}}
	}
	claiming := cpu("1")
	claiming.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	wantedClaiming := cpu("2")
	wantedClaiming.Claims = claiming.Claims
	js := newSet(with("w", 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
		pod := &rj.Template.Spec.Template.Spec
		pod.InitContainers = []corev1.Container{{Name: "init", Resources: cpu("3")}}
		pod.Containers = []corev1.Container{{Name: "same", Resources: cpu("1000m")}, {Name: "main", Resources: cpu("2")}, {Name: "new"}}
	}))
	job := jobNamed("w", 0, jobIsSuspended, func(job *batchv1.Job) {
		pod := &job.Spec.Template.Spec
		pod.InitContainers = []corev1.Container{{Name: "other"}, {Name: "init", Resources: cpu("1")}}
		pod.Containers = []corev1.Container{{Name: "main", Resources: claiming}, {Name: "same", Resources: cpu("1")}}
	})
	for name, tc := range map[string]struct {
		gate bool
		want []ContainerResources
	}{
		"without the feature they stay": {false, nil},
		"with the feature those that differ change, of containers of the same name, and claims stay": {true, []ContainerResources{
			{Init: true, Index: 1, Resources: cpu("3")}, {Index: 0, Resources: wantedClaiming},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(js, job)
			o.Gates.MutablePodResourcesForSuspendedJobSets = tc.gate
			patches := Decide(o).PatchJobs
			if len(patches) != 1 {
				t.Fatalf("patches %+v", patches)
			}
			var got []ContainerResources
			if directives := patches[0].Directives; directives != nil {
				got = directives.Resources
			}
			diff(t, "resources", tc.want, got)
		})
	}
}

func TestElasticSize(t *testing.T) {
	size := func(parallelism, completions *int32) *Size {
		return &Size{Parallelism: parallelism, Completions: completions}
	}
	two, four := ptr.To[int32](2), ptr.To[int32](4)
	for name, tc := range map[string]struct {
		template, job *Size
		off           bool
		want          *Size
	}{
		"a Job of another size is resized":         {template: size(four, four), job: size(two, two), want: size(four, four)},
		"a Job half resized is resized":            {template: size(four, four), job: size(four, two), want: size(four, four)},
		"a Job of the right size is left alone":    {template: size(two, two), job: size(two, two)},
		"a template of unequal numbers is no size": {template: size(two, four), job: size(two, two)},
		"a template without numbers is no size":    {template: size(nil, nil), job: size(two, two)},
		"without the feature no Job is resized":    {template: size(four, four), job: size(two, two), off: true},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
				rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = tc.template.Parallelism, tc.template.Completions
			}))
			job := jobNamed("w", 0, func(job *batchv1.Job) {
				job.Spec.Parallelism, job.Spec.Completions = tc.job.Parallelism, tc.job.Completions
			})
			o := observe(js, job)
			o.Gates.ElasticJobSet = !tc.off
			var want []JobPatch
			if tc.want != nil {
				want = []JobPatch{{JobRef: refTo(job), ResourceVersion: "7", Size: tc.want}}
			}
			diff(t, "patches", want, Decide(o).PatchJobs)
		})
	}
}
