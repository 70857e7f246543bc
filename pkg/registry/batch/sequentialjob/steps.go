// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
)

// recordStepChanges records in the status of the next object in which generation the steps changed. With the strategy Restart,
// a change of the step that runs begins a new attempt of it; the controller stops the child of the old one.
func recordStepChanges(next, prev *batch.SequentialJob, call actions.Call) {
	now, was := actions.Versioned(next), actions.Versioned(prev)
	if equalSteps(&now.Spec, &was.Spec) {
		return
	}
	next.Status.StepsGeneration = next.Generation
	index := running(was)
	if next.Spec.UpdateStrategy == nil || next.Spec.UpdateStrategy.Type != batch.UpdateRestart ||
		index < 0 || helper.EqualStep(&now.Spec, &was.Spec, index) {
		return
	}
	actions.RunAgain(next, index, call)
}

// equalSteps returns whether all steps, and what they share, are the same in both specs.
func equalSteps(a, b *batchv1alpha1.SequentialJobSpec) bool {
	return equality.Semantic.DeepEqual(a.Containers, b.Containers) && equality.Semantic.DeepEqual(a.Steps, b.Steps) &&
		equality.Semantic.DeepEqual(a.Template, b.Template) && equality.Semantic.DeepEqual(a.BackoffLimit, b.BackoffLimit)
}

// running returns the index of the step that was started and has not ended; -1 if there is none.
func running(sj *batchv1alpha1.SequentialJob) int {
	current := sj.Status.Progress.CurrentIndex
	if current == nil || *current < 0 || int(*current) >= len(sj.Status.Steps) || helper.Finished(sj) != nil {
		return -1
	}
	switch sj.Status.Steps[*current].State {
	case "", batchv1alpha1.StepPending, batchv1alpha1.StepSucceeded, batchv1alpha1.StepFailed:
		return -1
	}
	return int(*current)
}
