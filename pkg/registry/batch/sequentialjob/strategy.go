// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sequentialjob holds the strategies of the SequentialJob resource: what the server fills in, clears, checks and warns
// about when a sequence is created or changed, on the main resource and on its status.
package sequentialjob

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
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
