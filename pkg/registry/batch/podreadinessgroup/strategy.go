// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podreadinessgroup holds the strategies of the PodReadinessGroup resource and of its status.
package podreadinessgroup

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// Strategy creates, updates and deletes PodReadinessGroups.
type Strategy struct {
	strategy.Main[*batch.PodReadinessGroup, batch.PodReadinessGroupStatus]
}

// StatusStrategy updates the status of PodReadinessGroups.
type StatusStrategy = strategy.Status[*batch.PodReadinessGroup, batch.PodReadinessGroupStatus]

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return Strategy{strategy.New(typer, strategy.Kind[*batch.PodReadinessGroup, batch.PodReadinessGroupStatus]{
		Version: batchv1alpha1.SchemeGroupVersion,
		Parts: func(group *batch.PodReadinessGroup) (any, *batch.PodReadinessGroupStatus) {
			return &group.Spec, &group.Status
		},
		ValidateCreate: validation.ValidatePodReadinessGroupCreate, ValidateUpdate: validation.ValidatePodReadinessGroupUpdate,
		ValidateStatus: validation.ValidatePodReadinessGroupStatusUpdate,
	})}
}

// NewStatusStrategy derives the strategy of the status subresource.
func NewStatusStrategy(s Strategy) StatusStrategy { return strategy.NewStatus(s.Main) }

// PrepareForCreate drops the status, except for the phase of a group without pods.
func (s Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Main.PrepareForCreate(ctx, obj)
	obj.(*batch.PodReadinessGroup).Status.Phase = batch.GroupPending
}
