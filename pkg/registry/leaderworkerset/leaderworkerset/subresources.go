// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// StatusStrategy updates the status of LeaderWorkerSets.
type StatusStrategy struct {
	strategy.Status[*leaderworkerset.LeaderWorkerSet, leaderworkerset.LeaderWorkerSetStatus]
}

// NewStatusStrategy derives the strategy of the status subresource.
func NewStatusStrategy(s Strategy) StatusStrategy { return StatusStrategy{strategy.NewStatus(s.Main)} }

// PrepareForUpdate takes nothing but the status, and the record of who wrote it, from the request. What the server alone writes
// into the status stays as it is.
func (s StatusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.Status.PrepareForUpdate(ctx, obj, old)
	next, prev := obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet)
	next.Status.LastAction = prev.Status.LastAction.DeepCopy()
}

// ScaleStrategy updates the number of groups, on behalf of autoscalers and of kubectl scale.
type ScaleStrategy struct {
	Strategy
}

// NewScaleStrategy derives the strategy of the scale subresource.
func NewScaleStrategy(s Strategy) ScaleStrategy { return ScaleStrategy{Strategy: s} }

var _ rest.RESTUpdateStrategy = ScaleStrategy{}

// ValidateUpdate checks the range of replicas only, as the schema of upstream does. The rules that depend on replicas are not checked: an
// autoscaler that went from 10 groups to 5 would be refused because 10% of 5 groups is 0. The controller copes with such sets.
func (ScaleStrategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return validation.ValidateLeaderWorkerSetScale(obj.(*leaderworkerset.LeaderWorkerSet))
}

// ActionStrategy updates LeaderWorkerSets on behalf of who may not edit them.
type ActionStrategy struct {
	Strategy
}

// NewActionStrategy derives the strategy of the subresources that act on a set.
func NewActionStrategy(s Strategy) ActionStrategy { return ActionStrategy{Strategy: s} }

var _ rest.RESTUpdateStrategy = ActionStrategy{}

// PrepareForUpdate takes nothing but what actions change from the changed object: spec.paused, what a rollback returns to, and the
// status. Who owns which field stays as it is: an action is no manager that would go on to want a value.
func (s ActionStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, prev := obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet)
	changed := next.Spec
	s.TakeStatus(next, prev)
	next.Spec.Paused = changed.Paused
	next.Spec.LeaderWorkerTemplate, next.Spec.NetworkConfig = changed.LeaderWorkerTemplate, changed.NetworkConfig
	normalize(&next.Spec.LeaderWorkerTemplate)
	s.CountChange(next, prev)
}

// ValidateUpdate checks the changed set as an edit, and its status.
func (s ActionStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	next, prev := obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet)
	return append(s.Strategy.ValidateUpdate(ctx, obj, old), validation.ValidateLeaderWorkerSetStatusUpdate(next, prev)...)
}

// WarningsOnUpdate is silent: a response to an action has a message of its own.
func (ActionStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
