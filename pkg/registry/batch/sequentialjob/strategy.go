// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sequentialjob holds the strategies of the SequentialJob resource: what the server fills in, clears, checks and warns
// about when a sequence is created or changed, on the main resource and on its status.
package sequentialjob

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
)

// Strategy creates, updates and deletes SequentialJobs.
type Strategy struct {
	strategy.Main[*batch.SequentialJob, batch.SequentialJobStatus]
	options validation.Options
	now     func() time.Time
}

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group; the gates apply to JobSets that are steps.
// The clock sets the times in status.lastAction, in which the server records who suspended or resumed a sequence, and of steps that a
// change runs again.
func NewStrategy(typer runtime.ObjectTyper, gates gates.Gates, now func() time.Time) Strategy {
	s := Strategy{now: now, options: validation.Options{Gates: gates, Default: jobset.SetCreateDefaults}}
	s.Main = strategy.New(typer, strategy.Kind[*batch.SequentialJob, batch.SequentialJobStatus]{
		Version: batchv1alpha1.SchemeGroupVersion,
		Parts:   func(sj *batch.SequentialJob) (any, *batch.SequentialJobStatus) { return &sj.Spec, &sj.Status },
		ValidateCreate: func(sj *batch.SequentialJob) field.ErrorList {
			return validation.ValidateSequentialJobCreate(sj, s.options)
		},
		ValidateUpdate: func(next, prev *batch.SequentialJob) field.ErrorList {
			return validation.ValidateSequentialJobUpdate(next, prev, s.options)
		},
		ValidateStatus: validation.ValidateSequentialJobStatusUpdate, Warnings: s.warnings,
	})
	return s
}

// PrepareForCreate drops the status, except for what the server derives.
func (s Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Main.PrepareForCreate(ctx, obj)
	sj := obj.(*batch.SequentialJob)
	sj.Status.StepsGeneration = sj.Generation
	actions.SetPhase(sj)
}

// PrepareForUpdate keeps the status, counts a change of the spec in the generation, and records in the status what a change
// of steps means for the one that runs, and who suspended or resumed the sequence.
func (s Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	next, prev := obj.(*batch.SequentialJob), old.(*batch.SequentialJob)
	next.Status = *prev.Status.DeepCopy()
	if s.CountChange(next, prev) {
		call := actions.Call{User: strategy.User(ctx), Now: s.now()}
		recordStepChanges(next, prev, call)
		actions.RecordEdit(next, prev, call)
	}
	actions.SetPhase(next)
}

// StatusStrategy updates the status of SequentialJobs.
type StatusStrategy struct {
	strategy.Status[*batch.SequentialJob, batch.SequentialJobStatus]
}

// NewStatusStrategy derives the strategy of the status subresource.
func NewStatusStrategy(s Strategy) StatusStrategy { return StatusStrategy{strategy.NewStatus(s.Main)} }

// PrepareForUpdate takes nothing but the status, and the record of who wrote it, from the request. What the server alone
// writes into the status stays as it is.
func (s StatusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.Status.PrepareForUpdate(ctx, obj, old)
	next, prev := obj.(*batch.SequentialJob), old.(*batch.SequentialJob)
	next.Status.StepsGeneration, next.Status.LastAction = prev.Status.StepsGeneration, prev.Status.LastAction.DeepCopy()
	actions.SetPhase(next)
}

// ActionStrategy updates SequentialJobs on behalf of who may not edit them.
type ActionStrategy struct {
	Strategy
}

// NewActionStrategy derives the strategy of the subresources that act on a SequentialJob.
func NewActionStrategy(s Strategy) ActionStrategy { return ActionStrategy{Strategy: s} }

var _ rest.RESTUpdateStrategy = ActionStrategy{}

// PrepareForUpdate takes nothing but spec.suspend and the status from the changed object. Who owns which field stays as it
// is: an action is no manager that would go on to want a value.
func (s ActionStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*batch.SequentialJob), old.(*batch.SequentialJob)
	suspend := next.Spec.Suspend
	s.TakeStatus(next, prev)
	next.Spec.Suspend = suspend
	s.CountChange(next, prev)
	actions.SetPhase(next)
}

// ValidateUpdate checks the changed status. An action may take back what the controller may not, such as that a step has
// completed. The change of the spec is right by itself.
func (ActionStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSequentialJobAction(obj.(*batch.SequentialJob), old.(*batch.SequentialJob))
}

// WarningsOnUpdate is silent: who acts on a SequentialJob cannot change what warnings are about.
func (ActionStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// recordStepChanges records in the status of the next object in which generation the steps changed. With the strategy Restart,
// a change of the step that runs begins a new attempt of it; the controller stops the child of the old one. Of a sequence that is
// being deleted, nothing begins: the status goes on to name the child that is to be stopped.
func recordStepChanges(next, prev *batch.SequentialJob, call actions.Call) {
	now, was := actions.Versioned(next), actions.Versioned(prev)
	if equalSteps(&now.Spec, &was.Spec) {
		return
	}
	next.Status.StepsGeneration = next.Generation
	index := running(was)
	if prev.DeletionTimestamp != nil || next.Spec.UpdateStrategy == nil || next.Spec.UpdateStrategy.Type != batch.UpdateRestart ||
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
