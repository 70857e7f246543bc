// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// startedAgo sets the start of a step.
func startedAgo(d time.Duration) func(*batchv1alpha1.SequentialJobStepStatus) {
	return func(s *batchv1alpha1.SequentialJobStepStatus) { s.StartTime = ptr.To(ago(d)) }
}

// prepareTrain is a sequence whose first step has completed. The second, a JobSet, runs its second attempt.
func prepareTrain() *snapshot.Sequence {
	train := newSet(builders.WithJobs("workers", 2, 1))
	sj := builders.SequentialJob("nightly",
		builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "prepare", Container: &corev1.Container{Name: "prepare"}}),
		builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "train", JobSet: &batchv1alpha1.JobSetTemplateSpec{Spec: train.JobSet.Spec}}),
		builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "evaluate", Container: &corev1.Container{Name: "evaluate"}}),
		builders.Started(batchv1alpha1.StepSucceeded, startedAgo(2*time.Hour)),
		builders.Started(batchv1alpha1.StepRunning, startedAgo(time.Hour), func(s *batchv1alpha1.SequentialJobStepStatus) { s.Attempts = 2 }),
	)
	sj.CreationTimestamp = ago(3 * time.Hour)
	first := builders.StepJob(sj, 0, func(job *batchv1.Job) {
		job.CreationTimestamp, job.Status.Succeeded = ago(2*time.Hour), 1
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	})
	done := builders.StepPod(first, "aaaaa", func(pod *corev1.Pod) {
		pod.CreationTimestamp, pod.Status = ago(2*time.Hour), corev1.PodStatus{Phase: corev1.PodSucceeded}
	})
	train.JobSet.ObjectMeta = builders.StepMeta(sj, 1, "nightly-1")
	train.JobSet.CreationTimestamp = ago(time.Hour)
	addJob(train, "workers", 0, 1)
	addJob(train, "workers", 1, 1)
	for i, job := range train.Jobs {
		job.Name = fmt.Sprintf("nightly-1-workers-%d", i)
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(train.JobSet, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))}
	}
	jobs, pods := []batchv1.Job{*first, *train.Jobs[0], *train.Jobs[1]}, []corev1.Pod{*done, *train.Pods[0], *train.Pods[1]}
	return snapshot.AssembleSequence(sj, jobs, []jobsetv1alpha2.JobSet{*train.JobSet}, pods, now)
}

func TestSequenceWithJobSet(t *testing.T) {
	same(t, `NAME STATE READY RESTARTS AGE NODE MESSAGE
sequentialjob/nightly Running 1/3 1 3h step 2/3 train
├─ step/prepare Succeeded 0 120m
│ └─ job/nightly-0 Complete 1/1 0 120m
│ └─ pod/nightly-0-aaaaa Succeeded 0/1 0 120m node-1
├─ step/train Running 1 60m
│ └─ jobset/nightly-1 Running 2/2 0 60m attempt 1
│ └─ replicatedJob/workers Ready 2/2 0
│ ├─ job/nightly-1-workers-0 Ready 1/1 0 120m
│ │ └─ pod/train-workers-0-0-x Running 1/1 0 60m node-0
│ └─ job/nightly-1-workers-1 Ready 1/1 0 120m
│ └─ pod/train-workers-1-0-x Running 1/1 0 60m node-0
└─ step/evaluate Pending`, newSequence(prepareTrain()).Lines(cli.Terminal{}, now, false))
}

func TestFailedSequence(t *testing.T) {
	sj := builders.SequentialJob("etl", builders.WithContainers("extract", "transform", "load"),
		builders.Started(batchv1alpha1.StepSucceeded, startedAgo(2*time.Hour)),
		builders.Started(batchv1alpha1.StepFailed, startedAgo(time.Hour), func(s *batchv1alpha1.SequentialJobStepStatus) {
			s.Reason, s.Message, s.ExitCode, s.CompletionTime = "BackoffLimitExceeded", "Job has reached the specified backoff limit", ptr.To[int32](3), ptr.To(ago(time.Minute))
			s.FirstCause = &jobsetv1alpha2.FailureCause{Job: "etl-1", Pod: "etl-1-bbbbb", ExitCode: ptr.To[int32](3)}
		}))
	sj.CreationTimestamp = ago(3 * time.Hour)
	sj.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: "JobFailed", Message: "Job 1 failed: BackoffLimitExceeded"}}
	s := snapshot.AssembleSequence(sj, nil, nil, nil, now)
	same(t, `NAME STATE READY RESTARTS AGE NODE MESSAGE
sequentialjob/etl Failed 1/3 0 3h step 2/3 transform; BackoffLimitExceeded: Job 1 failed: BackoffLimitExceeded
├─ step/extract Succeeded 0 120m its Job is deleted
├─ step/transform Failed 0 60m BackoffLimitExceeded: Job has reached the specified backoff limit; pod etl-1-bbbbb ended with exit code 3
└─ step/load Pending not run: the sequence has finished`, newSequence(s).Lines(cli.Terminal{}, now, false))
}

func TestSequenceFitsTheTerminal(t *testing.T) {
	for _, width := range []int{60, 80} {
		for _, line := range newSequence(prepareTrain()).Lines(cli.Terminal{Width: width}, now, false) {
			if cli.Columns(line) > width {
				t.Errorf("%d columns: got %d in %q", width, cli.Columns(line), line)
			}
		}
	}
}

func TestChildOfAnotherSequenceIsNotShown(t *testing.T) {
	s := prepareTrain()
	foreign := builders.StepJob(builders.SequentialJob("nightly", builders.WithContainers("a")), 0)
	foreign.OwnerReferences[0].UID = "another"
	got := snapshot.AssembleSequence(s.SequentialJob, []batchv1.Job{*foreign}, nil, nil, now)
	if got.Steps[0].Job != nil {
		t.Error("a Job of another owner is shown as the child of the step")
	}
}
