// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// TestResumedJobsKeepUncachedFields resumes a Job that was created suspended, and to which the Job API gave keys. The
// set has then got a label team, an annotation with a name that a patch must escape, and its second execution.
func TestResumedJobsKeepUncachedFields(t *testing.T) {
	type keys = map[string]string
	const escaped = "example.com/note~1"
	suspended := newSet()
	suspended.Spec.Suspend = ptr.To(true)
	resumed := newSet()
	resumed.Generation, resumed.Status.ExecutionAttempts = 2, ptr.To[int32](2)
	template := &resumed.Spec.ReplicatedJobs[0].Template.Spec.Template
	template.Labels, template.Annotations = keys{"team": "a"}, keys{escaped: "b"}
	gates := gates.Gates{ExecutionAttemptsTracking: true}
	addedAnnotations := keys{escaped: "b", jobsetv1alpha2.ExecutionAttemptKey: "2"}

	for name, change := range map[string]func(has, lacks *metav1.ObjectMeta){
		"keys of the set are added": func(*metav1.ObjectMeta, *metav1.ObjectMeta) {},
		"keys that the set has no more get lost": func(_, lacks *metav1.ObjectMeta) {
			lacks.Labels, lacks.Annotations = keys{"stale": "x"}, keys{"kueue.x-k8s.io/sta~le": "x", "stale": ""}
		},
		"other values of the keys of the set are replaced": func(_, lacks *metav1.ObjectMeta) {
			lacks.Labels, lacks.Annotations = keys{"team": "z"}, keys{escaped: "z", jobsetv1alpha2.ExecutionAttemptKey: "1"}
		},
		"keys that belong to the Job keep values that nobody expects": func(has, _ *metav1.ObjectMeta) {
			maps.Copy(has.Labels, keys{jobsetv1alpha2.GlobalReplicasKey: "99", "batch.kubernetes.io/new": "1", "controller-uid": "other"})
			maps.Copy(has.Annotations, keys{jobsetv1alpha2.JobSetUIDKey: "other", "alpha.jobset.sigs.k8s.io/x": ""})
		},
		"keys that belong to the Job are not given to it": func(has, _ *metav1.ObjectMeta) {
			delete(has.Labels, jobsetv1alpha2.JobIndexKey)
			delete(has.Annotations, jobsetv1alpha2.JobIndexKey)
		},
		"a Job without any gets those of the set": func(has, _ *metav1.ObjectMeta) { has.Labels, has.Annotations = nil, nil },
		"a Job with none that belong to it gets those of the set": func(has, lacks *metav1.ObjectMeta) {
			has.Labels, has.Annotations = nil, nil
			lacks.Labels, lacks.Annotations = keys{"stale": "x"}, keys{"stale": "x"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := plan.Decide(plan.Observed{JobSet: suspended}).CreateJobs[0]
			job.UID, job.ResourceVersion = "uid-job", "5"
			job.Labels["mine"], job.Annotations["mine"] = "1", "1"
			has, lacks := &job.Spec.Template.ObjectMeta, &metav1.ObjectMeta{}
			maps.Copy(has.Labels, keys{"controller-uid": "uid-job", "batch.kubernetes.io/job-name": job.Name})
			change(has, lacks)
			want := job.DeepCopy()
			want.Spec.Suspend = ptr.To(false)
			maps.Copy(want.Annotations, keys{jobsetv1alpha2.ReleasedKey: "2", jobsetv1alpha2.ExecutionAttemptKey: "2"})
			want.Spec.Template.Labels = joined(has.Labels, keys{"team": "a"})
			want.Spec.Template.Annotations = joined(has.Annotations, addedAnnotations)
			if len(lacks.Labels) > 0 {
				has.Labels, has.Annotations = joined(has.Labels, lacks.Labels), joined(has.Annotations, lacks.Annotations)
			}

			r := newRig(t, resumed, job.DeepCopy())
			observed, err := newTransform(gates)(job)
			if err != nil {
				t.Fatal(err)
			}
			patches := plan.Decide(plan.Observed{JobSet: resumed, Jobs: []*batchv1.Job{observed.(*batchv1.Job)}, Gates: gates}).PatchJobs
			if err := r.apply(t, resumed, plan.Plan{PatchJobs: patches}); err != nil {
				t.Fatal(err)
			}
			got, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), job.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "resumed Job", want, got)
		})
	}
}

func TestResumingAsksForNoMoreThanWhatChanges(t *testing.T) {
	patch := plan.JobPatch{ResourceVersion: "5", Directives: &plan.Directives{
		OldLabels: map[string]string{"a": "1", "b": "2", "c/d": "3"}, Labels: map[string]string{"a": "1", "b": "3", "e": "4"},
		OldAnnotations: map[string]string{"a": "1"}, Annotations: map[string]string{"a": "1"},
	}}
	var got []children.Operation
	for _, step := range operations(patch) {
		if strings.HasPrefix(step.Path, "/spec/template/metadata/") {
			got = append(got, step)
		}
	}
	// What is removed is set before, so that it is there.
	diff(t, "steps", []children.Operation{
		{Op: "add", Path: "/spec/template/metadata/labels/b", Value: "3"},
		{Op: "add", Path: "/spec/template/metadata/labels/e", Value: "4"},
		{Op: "add", Path: "/spec/template/metadata/labels/c~1d", Value: ""},
		{Op: "remove", Path: "/spec/template/metadata/labels/c~1d"},
	}, got)
}

func joined(sources ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, source := range sources {
		maps.Copy(all, source)
	}
	return all
}

func TestPatchesOfJobs(t *testing.T) {
	set := newSet()
	resume := plan.JobPatch{
		JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Suspend: ptr.To(false),
		Directives: &plan.Directives{Labels: map[string]string{"a": "1"}, SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}}},
	}
	restart := resume
	restart.ClearStartTime = true
	const version = `{"op":"add","path":"/metadata/resourceVersion","value":"5"}`
	const directives = `{"op":"add","path":"/spec/suspend","value":false},` +
		`{"op":"add","path":"/spec/template/metadata/labels","value":{"a":"1"}},` +
		`{"op":"add","path":"/spec/template/metadata/annotations","value":null},` +
		`{"op":"add","path":"/spec/template/spec/nodeSelector","value":null},` +
		`{"op":"add","path":"/spec/template/spec/tolerations","value":null},` +
		`{"op":"add","path":"/spec/template/spec/schedulingGates","value":[{"name":"g"}]}`
	for name, tc := range map[string]struct {
		patch plan.JobPatch
		want  []string
	}{
		"suspending changes one field of the version that was observed": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Suspend: ptr.To(true)},
			want:  []string{`: [` + version + `,{"op":"add","path":"/spec/suspend","value":true}]`},
		},
		"resuming replaces all directives in the same write": {
			patch: resume,
			want:  []string{`: [` + version + `,` + directives + `]`},
		},
		"the start time goes first, and the rest is for the version that this makes": {
			patch: restart,
			want: []string{
				`status: [` + version + `,{"op":"remove","path":"/status/startTime"}]`,
				`: [{"op":"add","path":"/metadata/resourceVersion","value":"6"},` + directives + `]`,
			},
		},
		"annotations of the Job are set one by one": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Annotations: map[string]string{"b.c/d~e": "2", "a": ""}},
			want: []string{`: [` + version + `,{"op":"add","path":"/metadata/annotations/a","value":""},` +
				`{"op":"add","path":"/metadata/annotations/b.c~1d~0e","value":"2"}]`},
		},
		"a Job without annotations gets the map": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Annotations: map[string]string{"a": "1"}, Unannotated: true},
			want:  []string{`: [` + version + `,{"op":"add","path":"/metadata/annotations","value":{"a":"1"}}]`},
		},
		"resources are set by the place of the container": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Suspend: ptr.To(false), Directives: &plan.Directives{
				Labels: map[string]string{"a": "1"}, SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}},
				Resources: []plan.ContainerResources{
					{Init: true, Index: 1, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}}},
					{Index: 0, Resources: corev1.ResourceRequirements{}},
				},
			}},
			want: []string{`: [` + version + `,` + directives +
				`,{"op":"add","path":"/spec/template/spec/initContainers/1/resources","value":{"limits":{"cpu":"2"}}}` +
				`,{"op":"add","path":"/spec/template/spec/containers/0/resources","value":{}}]`},
		},
		"a size is two fields": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Size: &plan.Size{Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](4)}},
			want:  []string{`: [` + version + `,{"op":"add","path":"/spec/parallelism","value":4},{"op":"add","path":"/spec/completions","value":4}]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, set)
			var got []string
			r.kube.PrependReactor("patch", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
				patch := action.(clientgotesting.PatchAction)
				if !json.Valid(patch.GetPatch()) || patch.GetPatchType() != types.JSONPatchType {
					t.Errorf("no JSON patch: %s %s", patch.GetPatchType(), patch.GetPatch())
				}
				got = append(got, action.GetSubresource()+": "+string(patch.GetPatch()))
				return true, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "6"}}, nil
			})
			if err := r.apply(t, set, plan.Plan{PatchJobs: []plan.JobPatch{tc.patch}}); err != nil {
				t.Fatal(err)
			}
			diff(t, "patches", tc.want, got)
		})
	}
}
