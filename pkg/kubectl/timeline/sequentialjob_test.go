// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// ran sets the times of a step, in seconds after noon; no end for 0.
func ran(begin, end float64) func(*batchv1alpha1.SequentialJobStepStatus) {
	return func(s *batchv1alpha1.SequentialJobStepStatus) {
		s.StartTime = ptr.To(metav1.NewTime(after(begin)))
		if end > 0 {
			s.CompletionTime = ptr.To(metav1.NewTime(after(end)))
		}
	}
}

func newSequence(started ...func(*batchv1alpha1.SequentialJob)) *batchv1alpha1.SequentialJob {
	sj := builders.SequentialJob("etl", append([]func(*batchv1alpha1.SequentialJob){builders.WithContainers("extract", "transform", "load")}, started...)...)
	sj.Namespace, sj.CreationTimestamp = "team-a", metav1.NewTime(noon)
	return sj
}

func runningSequence() *batchv1alpha1.SequentialJob {
	return newSequence(builders.Started(batchv1alpha1.StepSucceeded, ran(2, 600)), builders.Started(batchv1alpha1.StepRunning, ran(900, 0), func(s *batchv1alpha1.SequentialJobStepStatus) { s.Attempts = 2 }))
}

func failedSequence() *batchv1alpha1.SequentialJob {
	sj := newSequence(builders.Started(batchv1alpha1.StepSucceeded, ran(2, 600)), builders.Started(batchv1alpha1.StepFailed, ran(601, 1200), func(s *batchv1alpha1.SequentialJobStepStatus) {
		s.Reason, s.Message, s.ExitCode = "BackoffLimitExceeded", "Job has reached the specified backoff limit", ptr.To[int32](3)
		s.FirstCause = &jobsetv1alpha2.FailureCause{Job: "etl-1", Pod: "etl-1-abcde", Node: "node-3", Container: "transform", ExitCode: ptr.To[int32](3), Reason: "Error"}
	}))
	sj.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: "JobFailed", LastTransitionTime: metav1.NewTime(after(1200))}}
	return sj
}

// blockedSequence is a sequence with a second step that has no node, reported after so many seconds of the step.
func blockedSequence(after30 float64) *batchv1alpha1.SequentialJob {
	sj := newSequence(builders.Started(batchv1alpha1.StepSucceeded, ran(2, 600)), builders.Started(batchv1alpha1.StepRunning, ran(900, 0)))
	sj.Status.Conditions = []metav1.Condition{{Type: "ResourcesUnavailable", Status: metav1.ConditionTrue, Reason: "Unschedulable",
		Message: "1 pod of job 1 cannot be scheduled: 0/3 nodes are available", LastTransitionTime: metav1.NewTime(after(900 + after30))}}
	return sj
}

func TestChartOfASequence(t *testing.T) {
	for name, tc := range map[string]struct {
		sequence *batchv1alpha1.SequentialJob
		width    int
	}{
		"sequentialjob-running": {runningSequence(), 100}, "sequentialjob-narrow": {runningSequence(), 60}, "sequentialjob-failed": {failedSequence(), 80},
		"sequentialjob-without-node": {blockedSequence(30), 80}, "sequentialjob-lost-node": {blockedSequence(400), 80},
		"sequentialjob-pending": {newSequence(), 80},
	} {
		t.Run(name, func(t *testing.T) {
			got := text(buildSequence(tc.sequence, after(1800)), screen{Terminal: cli.Terminal{Width: tc.width}, zone: time.UTC})
			for _, line := range strings.Split(got, "\n") {
				if cli.Columns(line) > tc.width {
					t.Errorf("wider than %d columns: %q", tc.width, line)
				}
			}
			golden.Compare(t, name+".txt", got)
		})
	}
}

func TestStepsOfATimeline(t *testing.T) {
	steps := buildSequence(runningSequence(), after(1800)).Steps
	if s := steps[0]; s.Open || s.Seconds != 598 {
		t.Errorf("a step that has completed: %+v", s)
	}
	if s := steps[1]; !s.Open || s.Seconds != 900 || s.Attempts != 2 {
		t.Errorf("a step that runs: %+v", s)
	}
	if s := steps[2]; s.Begin != nil || s.State != "Pending" {
		t.Errorf("a step that was not started: %+v", s)
	}
}

func TestPageOfASequence(t *testing.T) {
	var b bytes.Buffer
	if err := Page(&b, buildSequence(failedSequence(), after(1800)), time.UTC); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title>Timeline of sequentialjob team-a/etl</title>", `<rect class="bar failed" x="50.083%"`, `<td class="end-failed" data-label="State">Failed</td>`,
		"pod etl-1-abcde on node node-3: container transform, exit code 3, Error",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
}
