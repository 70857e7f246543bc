// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rolescaler holds the strategies of the DisaggregatedSetRoleScaler resource and of its status.
package rolescaler

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// Strategy creates, updates and deletes DisaggregatedSetRoleScalers.
type Strategy = strategy.Main[*disaggregatedset.DisaggregatedSetRoleScaler, disaggregatedset.DisaggregatedSetRoleScalerStatus]

// StatusStrategy updates the status of DisaggregatedSetRoleScalers.
type StatusStrategy = strategy.Status[*disaggregatedset.DisaggregatedSetRoleScaler, disaggregatedset.DisaggregatedSetRoleScalerStatus]

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return strategy.New(typer, strategy.Kind[*disaggregatedset.DisaggregatedSetRoleScaler, disaggregatedset.DisaggregatedSetRoleScalerStatus]{
		Version: disaggregatedsetv1.SchemeGroupVersion,
		Parts: func(s *disaggregatedset.DisaggregatedSetRoleScaler) (any, *disaggregatedset.DisaggregatedSetRoleScalerStatus) {
			return &s.Spec, &s.Status
		},
		ValidateCreate: validation.ValidateScalerCreate, ValidateUpdate: validation.ValidateScalerUpdate,
		ValidateStatus: validation.ValidateScalerStatusUpdate,
	})
}

// NewStatusStrategy derives the strategy of the status subresource.
func NewStatusStrategy(s Strategy) StatusStrategy { return strategy.NewStatus(s) }
