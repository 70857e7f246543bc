// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Sequence is a SequentialJob, and what -o json prints. Its fields are described in docs/kubectl.md.
type Sequence struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	snapshot.SequenceSummary
	CreateTime metav1.Time `json:"createTime"`
	Steps      []Step      `json:"steps"`
}

// Step is a step of a sequence.
type Step struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	// Kind is the kind of the child: Job or JobSet.
	Kind string `json:"kind"`
	// State is the state in status.steps, and Pending for a step that has not been started.
	State string `json:"state"`
	// Message explains the state: why the step failed, or what it waits for.
	Message        string       `json:"message,omitempty"`
	Attempts       int          `json:"attempts"`
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	ExitCode       *int32       `json:"exitCode,omitempty"`
	// ChildName is the name of the child, which exists or is created when the step starts.
	ChildName string `json:"childName"`
	// Job or JobSet is the child; absent if it does not exist.
	Job    *Job  `json:"job,omitempty"`
	JobSet *Tree `json:"jobSet,omitempty"`
}

// SequentialJob is the Loader of SequentialJobs.
func SequentialJob(ctx context.Context, c *cli.Clients, name string) (View, error) {
	return load(ctx, c, name, snapshot.LoadSequence, newSequence)
}

// newSequence derives the tree from what was read.
func newSequence(s *snapshot.Sequence) *Sequence {
	sj := s.SequentialJob
	t := &Sequence{
		Name: sj.Name, Namespace: sj.Namespace, SequenceSummary: snapshot.SummarizeSequence(sj), CreateTime: sj.CreationTimestamp,
		Steps: []Step{},
	}
	for i := range s.Steps {
		t.Steps = append(t.Steps, newStep(sj, &s.Steps[i]))
	}
	return t
}

func newStep(sj *batchv1alpha1.SequentialJob, s *snapshot.Step) Step {
	out := Step{
		Name: s.Name, Index: s.Index, Kind: string(s.Kind()), State: s.State(), Attempts: s.Attempts(),
		ChildName: helper.ChildName(sj.Name, s.Index),
		Message:   stepMessage(sj, s),
	}
	if s.Status != nil {
		out.StartTime, out.CompletionTime, out.ExitCode = s.Status.StartTime, s.Status.CompletionTime, s.Status.ExitCode
	}
	if s.Job != nil {
		job := jobOf(s.Job, s.JobState(), s.Outdated(s.Job), s.Pods)
		job.Index = s.Index
		out.Job = &job
	}
	if s.Set != nil {
		out.JobSet = New(s.Set)
	}
	return out
}

// stepMessage explains the state of a step as far as the sequence shows it.
func stepMessage(sj *batchv1alpha1.SequentialJob, s *snapshot.Step) string {
	finished := helper.Finished(sj)
	switch {
	case s.Status != nil && s.Status.State == batchv1alpha1.StepFailed:
		return stepFailure(s.Status)
	case s.Job == nil && s.Set == nil && s.Ended():
		return fmt.Sprintf("its %s is deleted", s.Kind())
	case finished != nil && !s.Ended():
		return "not run: the sequence has finished"
	case sj.DeletionTimestamp != nil && !s.Ended():
		return "the sequence is being deleted"
	case helper.ManagedElsewhere(sj) && s.Status == nil:
		return "left to the controller " + *sj.Spec.ManagedBy
	}
	return ""
}

// stepFailure is why a step failed, in few words.
func stepFailure(status *batchv1alpha1.SequentialJobStepStatus) string {
	text := status.Reason
	if status.Message != "" {
		text += ": " + status.Message
	}
	if cause := status.FirstCause; cause != nil && cause.ExitCode != nil && cause.Pod != "" {
		text += fmt.Sprintf("; pod %s ended with exit code %d", cause.Pod, *cause.ExitCode)
	}
	return oneLine(text)
}
