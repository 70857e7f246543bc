// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobset holds the strategies of the JobSet resource: what the server fills in, clears, checks and warns about
// when a JobSet is created or changed, on the main resource and on its status.
package jobset

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// Strategy creates, updates and deletes JobSets.
type Strategy struct {
	strategy.Main[*jobset.JobSet, jobset.JobSetStatus]
	gates gates.Gates
	now   func() time.Time
}

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group. The clock sets the times in the history,
// in which the server records who suspended or resumed a set.
func NewStrategy(typer runtime.ObjectTyper, gates gates.Gates, now func() time.Time) Strategy {
	s := Strategy{gates: gates, now: now}
	s.Main = strategy.New(typer, strategy.Kind[*jobset.JobSet, jobset.JobSetStatus]{
		Version: v1alpha2.SchemeGroupVersion,
		Parts:   func(js *jobset.JobSet) (any, *jobset.JobSetStatus) { return &js.Spec, &js.Status },
		ValidateCreate: func(js *jobset.JobSet) field.ErrorList {
			return validation.ValidateJobSetCreate(js, s.allowed(nil))
		},
		ValidateUpdate: func(next, prev *jobset.JobSet) field.ErrorList {
			return validation.ValidateJobSetUpdate(next, prev, s.allowed(prev))
		},
		ValidateStatus: func(next, prev *jobset.JobSet) field.ErrorList {
			return validation.ValidateJobSetStatusUpdate(next, prev, s.allowed(prev))
		},
		Warnings:  func(js *jobset.JobSet) []string { return Warnings(js, s.gates) },
		OwnStatus: ownStatus,
	})
	return s
}

// ownStatus returns the fields of the status that upstream's types lack. The start time is not one of them: upstream's next line
// has it, and controllers remove it.
func ownStatus(js *jobset.JobSet) []strategy.Field {
	status := &js.Status
	at := func(name string, value any) strategy.Field {
		return strategy.Field{Path: fieldpath.MakePathOrDie("status", name), Value: value}
	}
	return []strategy.Field{
		at("attempts", &status.Attempts), at("readyMilliseconds", &status.ReadyMilliseconds), at("goodMilliseconds", &status.GoodMilliseconds),
		at("addedRestarts", &status.AddedRestarts), at("placement", &status.Placement), at("executionAttempts", &status.ExecutionAttempts),
	}
}

// PrepareForCreate drops the status and fields of features that are off, and fills in the defaults that are applied on create only.
func (s Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Main.PrepareForCreate(ctx, obj)
	js := obj.(*jobset.JobSet)
	s.dropDisabledSpec(ctx, &js.Spec, &jobset.JobSetSpec{})
	normalizeTemplates(&js.Spec)
	SetCreateDefaults(&js.Spec)
}

// PrepareForUpdate keeps the status and counts a change of the spec in the generation. What the write says
// about the attempt is recorded in the status: a checkpoint of the job, and the user who suspended or resumed the set.
func (s Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	next, prev := obj.(*jobset.JobSet), old.(*jobset.JobSet)
	s.dropDisabledSpec(ctx, &next.Spec, &prev.Spec)
	normalizeTemplates(&next.Spec)
	keepCreateDefaults(&next.Spec, &prev.Spec)
	s.Main.PrepareForUpdate(ctx, next, prev)
	actions.RecordEdit(next, prev, s.Call(strategy.User(ctx), s.now()))
}

// Call is a call of an action by the user at the time, with the accounts that the gates ask for.
func (s Strategy) Call(user string, now time.Time) actions.Call {
	return actions.Call{User: user, Now: now, Gates: s.gates}
}

// Validate checks a new JobSet. Under strict validation, fields of features that are off are errors.
func (s Strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	js := obj.(*jobset.JobSet)
	return append(s.refuseDisabled(ctx, &js.Spec, &jobset.JobSetSpec{}), s.Main.Validate(ctx, js)...)
}

// ValidateUpdate checks a changed JobSet in the same way.
func (s Strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	next, prev := obj.(*jobset.JobSet), old.(*jobset.JobSet)
	return append(s.refuseDisabled(ctx, &next.Spec, &prev.Spec), s.Main.ValidateUpdate(ctx, next, prev)...)
}

// allowed returns what validation allows: what the gates allow, and what the stored object uses already.
func (s Strategy) allowed(prev *jobset.JobSet) gates.Gates {
	allowed := s.gates
	if prev != nil {
		allowed.InPlaceRestart = allowed.InPlaceRestart || validation.UsesInPlaceRestart(&prev.Spec)
		allowed.JobSetWorkloadAwareSchedulingAPI = allowed.JobSetWorkloadAwareSchedulingAPI || prev.Spec.Scheduling != nil
		allowed.RestartJob = allowed.RestartJob || validation.UsesRestartJob(&prev.Spec)
	}
	return allowed
}

// StatusStrategy updates the status of JobSets.
type StatusStrategy struct {
	strategy.Status[*jobset.JobSet, jobset.JobSetStatus]
	gates gates.Gates
}

// NewStatusStrategy derives the strategy of the status subresource.
func NewStatusStrategy(s Strategy) StatusStrategy {
	return StatusStrategy{Status: strategy.NewStatus(s.Main), gates: s.gates}
}

// PrepareForUpdate takes nothing but the status, and the record of who wrote it, from the request.
func (s StatusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.Status.PrepareForUpdate(ctx, obj, old)
	dropDisabledStatus(&obj.(*jobset.JobSet).Status, &old.(*jobset.JobSet).Status, s.gates)
}

// ActionStrategy updates JobSets on behalf of who may not edit them.
type ActionStrategy struct {
	Strategy
}

// NewActionStrategy derives the strategy of the subresources that act on a JobSet.
func NewActionStrategy(s Strategy) ActionStrategy { return ActionStrategy{Strategy: s} }

var _ rest.RESTUpdateStrategy = ActionStrategy{}

// PrepareForUpdate takes nothing but spec.suspend and the status from the changed object. Who owns which field stays as it
// is: an action is no manager that would go on to want a value.
func (s ActionStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*jobset.JobSet), old.(*jobset.JobSet)
	suspend := next.Spec.Suspend
	s.TakeStatus(next, prev)
	next.Spec.Suspend = suspend
	s.CountChange(next, prev)
}

// ValidateUpdate checks the changed status. The change of the spec is right by itself.
func (s ActionStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	prev := old.(*jobset.JobSet)
	return validation.ValidateJobSetStatusUpdate(obj.(*jobset.JobSet), prev, s.allowed(prev))
}

// WarningsOnUpdate is silent: who acts on a JobSet cannot change what warnings are about.
func (ActionStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
