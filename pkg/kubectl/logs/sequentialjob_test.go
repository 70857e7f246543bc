// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// nightly is a sequence whose first step has completed, whose second, a JobSet, runs, and whose third is still to come.
func nightly() *snapshot.Sequence {
	set := train()
	sj := builders.SequentialJob("nightly", builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "prepare", Container: &corev1.Container{}}),
		builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "train", JobSet: &batchv1alpha1.JobSetTemplateSpec{Spec: set.Spec}}),
		builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "evaluate", Container: &corev1.Container{}}),
		builders.Started(batchv1alpha1.StepSucceeded), builders.Started(batchv1alpha1.StepRunning))
	first := builders.StepJob(sj, 0)
	done := builders.StepPod(first, "aaaaa", with(corev1.PodSucceeded, exited("main", 0, 10)))
	set.ObjectMeta = builders.StepMeta(sj, 1, "nightly-1")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-leader-0", UID: "leader", OwnerReferences: []metav1.OwnerReference{{UID: set.UID, Controller: ptr.To(true)}}}}
	leader := newPod("leader", 0, 0, "bbbbb", func(pod *corev1.Pod) {
		pod.Labels[batchv1alpha1.StepNameKey], pod.Labels[batchv1alpha1.StepIndexKey] = "train", "1"
		pod.OwnerReferences = []metav1.OwnerReference{{UID: "leader", Controller: ptr.To(true)}}
	})
	return snapshot.AssembleSequence(sj, []batchv1.Job{*first, *job}, []jobsetv1alpha2.JobSet{*set}, []corev1.Pod{*done, *leader}, after(1000).Time)
}

func TestChooseSteps(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*options)
		want    []string
		wantErr string
	}{
		"the current step":     {want: []string{"[train leader-0-0] train-leader-0-0-bbbbb/main"}},
		"a step by name":       {change: func(o *options) { o.step = "prepare" }, want: []string{"[prepare] nightly-0-aaaaa/main"}},
		"a step by index":      {change: func(o *options) { o.step = "0" }, want: []string{"[prepare] nightly-0-aaaaa/main"}},
		"all steps":            {change: func(o *options) { o.allSteps = true }, want: []string{"[prepare] nightly-0-aaaaa/main", "[train leader-0-0] train-leader-0-0-bbbbb/main"}},
		"a step that is none":  {change: func(o *options) { o.step = "tune" }, wantErr: "--step: must be one of prepare, train, evaluate, or an index from 0 to 2"},
		"a part of the JobSet": {change: func(o *options) { o.replicatedJob = "workers" }},
		"no part of a Job":     {change: func(o *options) { o.step, o.replicatedJob = "prepare", "workers" }, wantErr: "need a step that is a JobSet"},
		"an unknown part":      {change: func(o *options) { o.replicatedJob = "ps" }, wantErr: "--replicated-job: must be one of leader, workers"},
		"the first attempt":    {change: func(o *options) { o.step, o.attempt = "prepare", 1 }, want: []string{"[prepare] nightly-0-aaaaa/main"}},
		"an unknown attempt":   {change: func(o *options) { o.step, o.attempt = "prepare", 2 }, wantErr: "attempt 2 is not on record; those of sequentialjob nightly are 1 to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{selection: selection{jobIndex: -1}}
			if tc.change != nil {
				tc.change(o)
			}
			got, err := o.choose(sourceOfSequence(nightly()))
			message := ""
			if err != nil {
				message = err.Error()
			}
			if tc.wantErr != "" || err != nil {
				if tc.wantErr == "" || !strings.Contains(message, tc.wantErr) {
					t.Errorf("got error %q, want %q", message, tc.wantErr)
				}
				return
			}
			if diff := cmp.Diff(tc.want, shown(got.streams)); diff != "" {
				t.Errorf("streams (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFollowGoesOnWithLaterSteps(t *testing.T) {
	o := &options{selection: selection{jobIndex: -1}, follow: true}
	if _, err := o.choose(sourceOfSequence(nightly())); err != nil {
		t.Fatal(err)
	}
	step := func(name, index string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{batchv1alpha1.StepNameKey: name, batchv1alpha1.StepIndexKey: index}}}
	}
	if o.wants(step("prepare", "0")) || !o.wants(step("train", "1")) || !o.wants(step("evaluate", "2")) {
		t.Error("the steps from the current one on are not those that are followed")
	}
}

func TestFirstFailureOfAStepWhosePodIsGone(t *testing.T) {
	s := nightly()
	s.Steps[1].Status.FirstCause = &jobsetv1alpha2.FailureCause{Job: "nightly-1-leader-0", Pod: "gone", ExitCode: ptr.To[int32](3), Message: "no space left"}
	o := &options{selection: selection{jobIndex: -1}, firstFailed: true}
	got, err := o.choose(sourceOfSequence(s))
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(got.notes, "\n"); !strings.Contains(text, "pod gone, which ended attempt 1 of step train, is gone with its log; the recorded cause is exit code 3") {
		t.Errorf("notes:\n%s", text)
	}
}

func TestJobSetsHaveNoSteps(t *testing.T) {
	o := &options{selection: selection{jobIndex: -1, step: "prepare"}}
	if _, err := o.choose(sourceOf(setOf(train()))); err == nil || !strings.Contains(err.Error(), "a JobSet has no steps") {
		t.Errorf("got %v", err)
	}
}
