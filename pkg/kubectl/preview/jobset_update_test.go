// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/creator"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// existing is the set of the cluster in these tests.
func existing(change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	js := builders.JobSet("train", builders.WithJobs("leader", 1, 1), builders.WithJobs("workers", 3, 2))
	js.ResourceVersion, js.UID, js.Generation = "7", "set-1", 3
	for _, f := range change {
		f(js)
	}
	return js
}

// previewUpdate previews the set of a manifest that differs from that of the cluster by the change.
func previewUpdate(t *testing.T, a *answers, change func(*jobsetv1alpha2.JobSet)) Set {
	t.Helper()
	next := a.live.DeepCopy()
	next.ResourceVersion, next.UID, next.Generation = "", "", 0
	delete(next.Annotations, corev1.LastAppliedConfigAnnotation)
	change(next)
	object := encoded(next)
	unstructured.RemoveNestedField(object.Object, "status")
	return previewManifest(t, a, object)
}

func previewManifest(t *testing.T, a *answers, o *unstructured.Unstructured) Set {
	t.Helper()
	report, err := preview(t.Context(), &Session{cluster: a, manager: applyManager}, []object{{o, jobSets[0]}})
	if err != nil {
		t.Fatal(err)
	}
	set := *report.Sets[0].(*Set)
	if report.Refused != set.Refused() || report.Changed != set.Changed() {
		t.Errorf("the report is refused %v, changed %v; its set %v, %v", report.Refused, report.Changed, set.Refused(), set.Changed())
	}
	return set
}

// lines are the changes, each as field, effect and text.
func lines(changes []Change) (out []string) {
	for _, c := range changes {
		out = append(out, c.Field+": "+valueText(c.Live)+" -> "+valueText(c.Next)+" ["+string(c.Effect)+"] "+c.Text)
	}
	return out
}

func TestChangesOfASetThatExists(t *testing.T) {
	suspended := func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }
	failed := func(js *jobsetv1alpha2.JobSet) { js.Status.TerminalState = "Failed" }
	size := func(n int32) func(*jobsetv1alpha2.JobSet) {
		return func(js *jobsetv1alpha2.JobSet) {
			job := &js.Spec.ReplicatedJobs[1].Template.Spec
			job.Parallelism, job.Completions = ptr.To(n), ptr.To(n)
		}
	}
	for name, tc := range map[string]struct {
		live   []func(*jobsetv1alpha2.JobSet)
		change func(*jobsetv1alpha2.JobSet)
		want   []string
	}{
		"nothing": {change: func(*jobsetv1alpha2.JobSet) {}},
		"suspend": {
			change: suspended,
			want:   []string{"spec.suspend: (none) -> true [Suspend] suspends the set: the pods are deleted, the Jobs stay (4 Jobs with 7 pods)"},
		},
		"resume": {
			live: []func(*jobsetv1alpha2.JobSet){suspended}, change: func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(false) },
			want: []string{"spec.suspend: true -> false [Resume] resumes the set as a new attempt: 4 Jobs with 7 pods"},
		},
		"suspend false where it was absent": {
			change: func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(false) },
			want:   []string{"spec.suspend: (none) -> false [None] no Job and no pod changes"},
		},
		"elastic size": {
			change: size(5),
			want: []string{
				"spec.replicatedJobs[1].template.spec.completions: 2 -> 5 [Scale] scales 3 Jobs of workers to 5 pods each; the pods that stay run on",
				"spec.replicatedJobs[1].template.spec.parallelism: 2 -> 5 [Scale] scales 3 Jobs of workers to 5 pods each; the pods that stay run on",
			},
		},
		"elastic size of a suspended set": {
			live: []func(*jobsetv1alpha2.JobSet){suspended}, change: func(js *jobsetv1alpha2.JobSet) {
				js.Spec.ReplicatedJobs[1].Template.Spec.Parallelism = ptr.To[int32](1)
			},
			want: []string{"spec.replicatedJobs[1].template.spec.parallelism: 2 -> 1 [OnResume] scales 3 Jobs of workers to 1 pod each once the set is resumed"},
		},
		"pod template of a suspended set": {
			live: []func(*jobsetv1alpha2.JobSet){suspended},
			change: func(js *jobsetv1alpha2.JobSet) {
				js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector = map[string]string{"a.b/c": "d"}
			},
			want: []string{"spec.replicatedJobs[0].template.spec.template.spec.nodeSelector[a.b/c]: (none) -> d [OnResume] pods have it once the set is resumed"},
		},
		"groups of the pods of a suspended set": {
			live: []func(*jobsetv1alpha2.JobSet){suspended, asGang}, change: func(js *jobsetv1alpha2.JobSet) {
				js.Spec.Scheduling.SchedulingPolicy = &jobsetv1alpha2.SchedulingPolicy{Basic: &jobsetv1alpha2.BasicSchedulingPolicy{}}
			},
			want: []string{"spec.scheduling.schedulingPolicy: (none) -> {\"basic\":{}} [OnResume] pods have it once the set is resumed"},
		},
		"time to live": {
			change: func(js *jobsetv1alpha2.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](60) },
			want:   []string{"spec.ttlSecondsAfterFinished: (none) -> 60 [Immediate] the set is deleted 60 seconds after it has finished"},
		},
		"time to live of a set that has finished": {
			live: []func(*jobsetv1alpha2.JobSet){failed}, change: func(js *jobsetv1alpha2.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](60) },
			want: []string{"spec.ttlSecondsAfterFinished: (none) -> 60 [Immediate] the set has finished, and is deleted 60 seconds after its end"},
		},
		"a set that has finished": {
			live: []func(*jobsetv1alpha2.JobSet){failed}, change: suspended,
			want: []string{"spec.suspend: (none) -> true [None] the set has finished"},
		},
		"coordinator and failure policy": {
			change: func(js *jobsetv1alpha2.JobSet) {
				js.Spec.Coordinator = &jobsetv1alpha2.Coordinator{ReplicatedJob: "leader"}
				js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 3}
			},
			want: []string{
				`spec.coordinator: (none) -> {"jobIndex":0,"podIndex":0,"replicatedJob":"leader"} [NextAttempt] only Jobs that are created from now on carry it, as after a restart`,
				`spec.failurePolicy: (none) -> {"maxRestarts":3} [Immediate] applies to the next failure of a Job`,
			},
		},
		"labels": {
			change: func(js *jobsetv1alpha2.JobSet) {
				js.Labels = map[string]string{"team": "ml", jobsetv1alpha2.QueueNameKey: "q"}
			},
			want: []string{
				"metadata.labels[kueue.x-k8s.io/queue-name]: (none) -> q [Immediate] the queue decides when the set runs",
				"metadata.labels.team: (none) -> ml [None] no Job and no pod changes",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := previewUpdate(t, &answers{live: existing(tc.live...)}, tc.change)
			if diff := cmp.Diff(tc.want, lines(got.Changes)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if !got.Exists || got.Verdict.Answer != Accepted || got.Changed() != (len(tc.want) > 0) {
				t.Errorf("exists %v, verdict %v, changed %v", got.Exists, got.Verdict, got.Changed())
			}
		})
	}
}

func TestRefusedChangesAreNamed(t *testing.T) {
	immutable := apierrors.NewInvalid(schema.GroupKind{Kind: "JobSet"}, "train", field.ErrorList{
		field.Invalid(field.NewPath("spec", "replicatedJobs").Index(1).Child("replicas"), 4, "cannot be changed"),
	})
	got := previewUpdate(t, &answers{live: existing(), set: immutable}, func(js *jobsetv1alpha2.JobSet) {
		js.Spec.ReplicatedJobs[1].Replicas, js.Labels = ptr.To[int32](4), map[string]string{"team": "ml"}
	})
	if !got.Refused() {
		t.Error("the set is not refused")
	}
	want := `JobSet train in namespace default: Refused
  spec.replicatedJobs[1].replicas: Invalid value: 4: cannot be changed

  metadata.labels.team: (none) -> ml
  spec.replicatedJobs[1].replicas: 3 -> 4
    refused

The set would not change at all. To make these changes, delete the set and create it again: 4 Jobs with 7 pods would start from the beginning.`
	if diff := cmp.Diff(want, strings.Join(got.Lines(cli.Terminal{}), "\n")); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// TestRemovedFields previews a manifest that no longer has a field which was applied before. Fields that others have set stay.
func TestRemovedFields(t *testing.T) {
	applied := existing(func(js *jobsetv1alpha2.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](60) })
	last, err := json.Marshal(encoded(applied).Object)
	if err != nil {
		t.Fatal(err)
	}
	live := applied.DeepCopy()
	live.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: string(last), "of": "others"}
	object := encoded(existing())
	got := previewManifest(t, &answers{live: live}, object)
	want := []string{"spec.ttlSecondsAfterFinished: 60 -> (none) [Immediate] the set is kept after it has finished"}
	if diff := cmp.Diff(want, lines(got.Changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestServerSideApply(t *testing.T) {
	byApply := existing(func(js *jobsetv1alpha2.JobSet) {
		js.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: applyManager, Operation: metav1.ManagedFieldsOperationApply}}
	})
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "jobsets"}, "train", field.Forbidden(field.NewPath("spec"), "jane has it"))
	a := &answers{live: byApply, conflict: conflict}
	got := previewUpdate(t, a, func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) })
	if len(a.patches) != 2 || a.patches[0].kind != types.ApplyPatchType || a.patches[0].force || !a.patches[1].force {
		t.Errorf("patches: %+v", a.patches)
	}
	if len(got.Notes) != 1 || !strings.HasPrefix(got.Notes[0], "kubectl apply --server-side needs --force-conflicts: ") {
		t.Errorf("notes: %q", got.Notes)
	}
	if len(got.Changes) != 1 || got.Verdict.Answer != Accepted {
		t.Errorf("verdict %v, changes %v", got.Verdict, got.Changes)
	}
}

// TestUnknownFieldsReachTheServer merges an object that the Go type does not have, which the server is to name.
func TestUnknownFieldsReachTheServer(t *testing.T) {
	object := encoded(existing())
	if err := unstructured.SetNestedField(object.Object, map[string]any{"a": "b"}, "spec", "sucessPolicy"); err != nil {
		t.Fatal(err)
	}
	a := &answers{live: existing()}
	previewManifest(t, a, object)
	if len(a.patches) != 1 || !strings.Contains(string(a.patches[0].body), `"sucessPolicy":{"a":"b"}`) {
		t.Errorf("patches: %+v", a.patches)
	}
}

func TestListsAreComparedByName(t *testing.T) {
	item := func(name, image string) any { return map[string]any{"name": name, "image": image} }
	for name, tc := range map[string]struct {
		live, next []any
		want       []string
	}{
		"added in front":       {live: []any{item("b", "x")}, next: []any{item("a", "x"), item("b", "x")}, want: []string{`l[0]: (none) -> {"image":"x","name":"a"}`}},
		"removed":              {live: []any{item("a", "x"), item("b", "x")}, next: []any{item("b", "x")}, want: []string{`l[0]: {"image":"x","name":"a"} -> (none)`}},
		"changed":              {live: []any{item("a", "x"), item("b", "x")}, next: []any{item("a", "x"), item("b", "y")}, want: []string{"l[1].image: x -> y"}},
		"another order":        {live: []any{item("a", "x"), item("b", "x")}, next: []any{item("b", "x"), item("a", "x")}, want: []string{`l: ["a","b"] -> ["b","a"]`}},
		"values":               {live: []any{"a", "b"}, next: []any{"a", "c"}, want: []string{"l[1]: b -> c"}},
		"more values":          {live: []any{"a"}, next: []any{"a", "c"}, want: []string{`l: ["a"] -> ["a","c"]`}},
		"a name that is twice": {live: []any{item("a", "x"), item("a", "y")}, next: []any{item("a", "x"), item("a", "z")}, want: []string{"l[1].image: y -> z"}},
	} {
		t.Run(name, func(t *testing.T) {
			var changes []Change
			compare("l", tc.live, tc.next, &changes)
			var got []string
			for _, c := range changes {
				got = append(got, c.Field+": "+valueText(c.Live)+" -> "+valueText(c.Next))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnnotationsOfOthers: what the server and `kubectl apply` keep in annotations is no change.
func TestAnnotationsOfOthers(t *testing.T) {
	live := existing(func(js *jobsetv1alpha2.JobSet) {
		js.Annotations = map[string]string{
			corev1.LastAppliedConfigAnnotation: "{}", namespaceuid.Annotation: "kept by the server", creator.Annotation: "kept, too", "mine": "x",
		}
	})
	next := existing(func(js *jobsetv1alpha2.JobSet) { js.Annotations = map[string]string{"mine": "y"} })
	changes := changesBetween(encoded(live), encoded(next))
	if len(changes) != 1 || changes[0].Field != "metadata.annotations.mine" {
		t.Errorf("changes %+v", changes)
	}
}
