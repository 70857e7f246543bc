// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// sequenceAnswers is a cluster that has its answers about sequences ready.
type sequenceAnswers struct {
	*answers
	created, existing *batchv1alpha1.SequentialJob
}

func encode(t *testing.T, sj *batchv1alpha1.SequentialJob) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func (a *sequenceAnswers) get(ctx context.Context, kind cli.Kind, namespace, name string) (*unstructured.Unstructured, error) {
	if a.existing == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind.Names[1]}, name)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.existing)
	return &unstructured.Unstructured{Object: content}, err
}

func (a *sequenceAnswers) create(ctx context.Context, kind cli.Kind, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if kind.Title != cli.SequentialJob.Title {
		return a.answers.create(ctx, kind, object)
	}
	a.note(ctx, kind.Title, object)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.created)
	return &unstructured.Unstructured{Object: content}, err
}

func (a *sequenceAnswers) patch(_ context.Context, _ cli.Kind, _ *unstructured.Unstructured, p patch) (*unstructured.Unstructured, error) {
	if a.set != nil {
		return nil, a.set
	}
	change := map[string]any{}
	if err := json.Unmarshal(p.body, &change); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.existing)
	if err != nil {
		return nil, err
	}
	mergeInto(content, change)
	sj := &batchv1alpha1.SequentialJob{} // decoding sets the types of numbers
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, sj); err != nil {
		return nil, err
	}
	content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(sj)
	return &unstructured.Unstructured{Object: content}, err
}

// previewSequence previews the manifest of a sequence.
func previewSequence(t *testing.T, a *sequenceAnswers, manifest *batchv1alpha1.SequentialJob) *Sequence {
	t.Helper()
	of := cli.For[Previewer]{Kind: cli.SequentialJob, Do: SequentialJob}
	report, err := preview(t.Context(), &Session{cluster: a}, []object{{encode(t, manifest), of}})
	if err != nil {
		t.Fatal(err)
	}
	return report.Sets[0].(*Sequence)
}

func nightly(change ...func(*batchv1alpha1.SequentialJob)) *batchv1alpha1.SequentialJob {
	return builders.SequentialJob("nightly", append([]func(*batchv1alpha1.SequentialJob){
		builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "prepare", Container: &corev1.Container{Name: "prepare", Image: "busybox"}}),
		builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "train", JobSet: &batchv1alpha1.JobSetTemplateSpec{Spec: builders.JobSet("", builders.WithJobs("w", 2, 1)).Spec}}),
	}, change...)...)
}

func clusterFor(sj *batchv1alpha1.SequentialJob, change ...func(*answers)) *sequenceAnswers {
	a := &answers{sets: map[string]*jobsetv1alpha2.JobSet{"nightly-1": builders.JobSet("nightly-1", builders.WithJobs("w", 2, 1))}}
	for _, f := range change {
		f(a)
	}
	return &sequenceAnswers{answers: a, created: sj}
}

func TestPreviewOfANewSequence(t *testing.T) {
	sj := nightly(func(sj *batchv1alpha1.SequentialJob) { sj.Labels = map[string]string{helper.QueueKey: "gpu"} })
	got := previewSequence(t, clusterFor(sj), sj)
	if got.Refused() || !got.Changed() || len(got.Steps) != 2 {
		t.Fatalf("got %+v", got)
	}
	first, second := got.Steps[0], got.Steps[1]
	if first.ChildName != "nightly-0" || first.Queue != "gpu" || first.Pods != 1 || first.Job.Answer != Accepted || first.Pod.Answer != Accepted {
		t.Errorf("first step: %+v", first)
	}
	if second.ChildName != "nightly-1" || second.JobSet == nil || second.JobSet.Jobs != 2 || second.Queue != "gpu" {
		t.Errorf("second step: %+v", second)
	}
	want := `SequentialJob nightly in namespace default: Accepted
  note: the queue gpu decides when each step runs: children are created suspended

step 1: prepare
  waits in the queue gpu
  KIND  NAMES            COUNT  ANSWER
  Job   nightly-0        1      Accepted
  Pod   nightly-0-xxxxx  1      Accepted

step 2: train
  waits in the queue gpu
  JobSet nightly-1 in namespace default: Accepted

    KIND  NAMES                        COUNT  ANSWER
    Job   nightly-1-w-[0-1]            2      Accepted
    Pod   nightly-1-w-[0-1]-0-xxxxx    2      Accepted

  The set would create 2 Jobs and 2 pods.

The sequence would run 2 steps one after another: nightly-0, nightly-1.`
	squeeze := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if lines := strings.Join(got.Lines(cli.Terminal{}), "\n"); squeeze(lines) != squeeze(want) {
		t.Errorf("got\n%s\nwant\n%s", lines, want)
	}
}

func TestRefusalsOfSteps(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "nightly-0", field.ErrorList{
		field.Required(field.NewPath("spec", "template", "spec", "containers").Index(0).Child("image"), "")})
	for name, tc := range map[string]struct {
		change func(*answers)
		want   string
	}{
		"the Job is invalid": {func(a *answers) { a.job = invalid }, "spec.steps[0].container.image: Required value"},
		"the name is taken":  {func(a *answers) { a.jobs = []string{"nightly-0"} }, "exists already: nightly-0; the sequence would wait until it is gone"},
		"a quota is too small": {func(a *answers) {
			a.limits = []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("0")}}}}
		}, "Short by 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := previewSequence(t, clusterFor(nightly(), tc.change), nightly())
			if text := strings.Join(got.Lines(cli.Terminal{}), "\n"); !got.Refused() || !strings.Contains(text, tc.want) {
				t.Errorf("refused: %v\n%s\nwant %s", got.Refused(), text, tc.want)
			}
		})
	}
}

func TestChangesOfASequence(t *testing.T) {
	started := builders.Started(batchv1alpha1.StepRunning)
	image := func(index int, name string) func(*batchv1alpha1.SequentialJob) {
		return func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Containers[index].Image = name }
	}
	strategy := func(of batchv1alpha1.SequentialJobUpdateStrategyType) func(*batchv1alpha1.SequentialJob) {
		return func(sj *batchv1alpha1.SequentialJob) {
			sj.Spec.UpdateStrategy = &batchv1alpha1.SequentialJobUpdateStrategy{Type: of}
		}
	}
	for name, tc := range map[string]struct {
		strategy batchv1alpha1.SequentialJobUpdateStrategyType
		change   func(*batchv1alpha1.SequentialJob)
		want     Effect
		wantText string
	}{
		"the step that runs, Continue": {"Continue", image(0, "new"), EffectNextStep, "step extract continues as it was started"},
		"the step that runs, Restart":  {"Restart", image(0, "new"), EffectRestart, "stops step extract, and runs it again"},
		"a later step":                 {"Restart", image(1, "new"), EffectNextStep, "steps that start from now on have it"},
		"what steps share, Restart":    {"Restart", func(sj *batchv1alpha1.SequentialJob) { sj.Spec.BackoffLimit = ptr.To[int32](1) }, EffectRestart, "stops step extract"},
		"suspend":                      {"Continue", func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(true) }, EffectSuspend, "the pods of step extract are deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			existing := builders.SequentialJob("etl", builders.WithContainers("extract", "load"), strategy(tc.strategy), started)
			changed := builders.SequentialJob("etl", builders.WithContainers("extract", "load"), strategy(tc.strategy))
			tc.change(changed)
			got := previewSequence(t, &sequenceAnswers{answers: &answers{}, existing: existing}, changed)
			if len(got.Changes) != 1 || got.Changes[0].Effect != tc.want || !strings.Contains(got.Changes[0].Text, tc.wantText) {
				t.Errorf("got %+v", got.Changes)
			}
		})
	}
}

func TestRefusedChangeOfASequence(t *testing.T) {
	existing := builders.SequentialJob("etl", builders.WithContainers("extract", "load"))
	changed := existing.DeepCopy()
	changed.Spec.Containers[0].Image = "new"
	forbids := apierrors.NewInvalid(schema.GroupKind{Kind: "SequentialJob"}, "etl", field.ErrorList{field.Forbidden(field.NewPath("spec", "containers").Index(0), "has started")})
	got := previewSequence(t, &sequenceAnswers{answers: &answers{set: forbids}, existing: existing}, changed)
	if !got.Refused() || len(got.Changes) != 1 || got.Changes[0].Effect != EffectRefused {
		t.Errorf("got %+v", got)
	}
}
