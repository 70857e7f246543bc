// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// QueueKey is the label that names the queue in which Kueue admits an object. The children of a SequentialJob inherit it.
const QueueKey = "kueue.x-k8s.io/queue-name"

// InheritedLabels are the labels that the children of a SequentialJob inherit from it: all are about queues.
var InheritedLabels = []string{QueueKey, "kueue.x-k8s.io/priority-class", "kueue.x-k8s.io/max-exec-time-seconds"}

// Step is one step of a sequence, however the spec describes it. Exactly one of Container, Job and JobSet is set.
type Step struct {
	Index int
	Name  string
	// InSteps means that the spec has it in steps, and not in containers.
	InSteps   bool
	Container *corev1.Container
	Job       *batchv1.JobTemplateSpec
	JobSet    *batchv1alpha1.JobSetTemplateSpec
}

// Kind returns the kind of the child of the step.
func (s Step) Kind() batchv1alpha1.StepKind {
	if s.JobSet != nil {
		return batchv1alpha1.StepKindJobSet
	}
	return batchv1alpha1.StepKindJob
}

// StepCount returns the number of steps.
func StepCount(spec *batchv1alpha1.SequentialJobSpec) int {
	return len(spec.Containers) + len(spec.Steps) // one of them is empty
}

// Steps returns the steps in order. They point into the spec.
func Steps(spec *batchv1alpha1.SequentialJobSpec) []Step {
	steps := make([]Step, 0, StepCount(spec))
	for i := range spec.Containers {
		steps = append(steps, Step{Index: i, Name: spec.Containers[i].Name, Container: &spec.Containers[i]})
	}
	for i := range spec.Steps {
		s := &spec.Steps[i]
		steps = append(steps, Step{Index: len(steps), Name: s.Name, InSteps: true, Container: s.Container, Job: s.Job, JobSet: s.JobSet})
	}
	return steps
}

// ChildName returns the name of the child of the step with the index.
func ChildName(sequence string, index int) string { return fmt.Sprintf("%s-%d", sequence, index) }

// CurrentIndex returns the index of the step that runs, is next, or failed: the number of steps once all have completed.
func CurrentIndex(status *batchv1alpha1.SequentialJobStatus) int {
	return int(ptr.Deref(status.Progress.CurrentIndex, 0))
}

// CurrentStep returns what is recorded about the current step, which points into the status; nil if that step was never started.
// The state of one that ran before a retry from an earlier step is Pending until it is started again.
func CurrentStep(status *batchv1alpha1.SequentialJobStatus) *batchv1alpha1.SequentialJobStepStatus {
	if i := CurrentIndex(status); status.Progress.CurrentIndex != nil && i >= 0 && i < len(status.Steps) {
		return &status.Steps[i]
	}
	return nil
}

// EqualStep returns whether a step with the index runs the same with both specs. What containers share counts for steps that are
// containers only.
func EqualStep(a, b *batchv1alpha1.SequentialJobSpec, index int) bool {
	as, bs := Steps(a), Steps(b)
	if index >= len(as) || index >= len(bs) || !equality.Semantic.DeepEqual(as[index], bs[index]) {
		return false
	}
	return as[index].Container == nil ||
		equality.Semantic.DeepEqual(a.Template, b.Template) && equality.Semantic.DeepEqual(a.BackoffLimit, b.BackoffLimit)
}

// Suspended returns whether the user has suspended the sequence.
func Suspended(sj *batchv1alpha1.SequentialJob) bool { return ptr.Deref(sj.Spec.Suspend, false) }

// ManagedElsewhere returns whether another controller than the built-in one runs the sequence.
func ManagedElsewhere(sj *batchv1alpha1.SequentialJob) bool {
	return ptr.Deref(sj.Spec.ManagedBy, batchv1alpha1.SequentialJobControllerName) != batchv1alpha1.SequentialJobControllerName
}
