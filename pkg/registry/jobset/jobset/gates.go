// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// disabledFields returns the fields of features that are off, each with the name of its gate and a function that removes it.
// What the stored spec has already is left alone.
func (s Strategy) disabledFields(next, prev *jobset.JobSetSpec) []disabledField {
	var fields []disabledField
	if !s.gates.JobSetActiveDeadlineSeconds && prev.ActiveDeadlineSeconds == nil && next.ActiveDeadlineSeconds != nil {
		fields = append(fields, disabledField{
			path: field.NewPath("spec", "activeDeadlineSeconds"), gate: "JobSetActiveDeadlineSeconds",
			drop: func() { next.ActiveDeadlineSeconds = nil },
		})
	}
	return fields
}

type disabledField struct {
	path *field.Path
	gate string
	drop func()
}

// dropDisabledSpec removes fields of features that are off, as unknown fields are: with a warning, unless the client does not
// want any, and not under strict validation, which refuses them.
func (s Strategy) dropDisabledSpec(ctx context.Context, next, prev *jobset.JobSetSpec) {
	directive := strategy.FieldValidation(ctx)
	if directive == metav1.FieldValidationStrict {
		return
	}
	for _, f := range s.disabledFields(next, prev) {
		f.drop()
		if directive != metav1.FieldValidationIgnore {
			warning.AddWarning(ctx, "", fmt.Sprintf("%s: ignored, because the feature gate %s of the API server is off", f.path, f.gate))
		}
	}
}

// refuseDisabled refuses fields of features that are off, under strict validation.
func (s Strategy) refuseDisabled(ctx context.Context, next, prev *jobset.JobSetSpec) field.ErrorList {
	if strategy.FieldValidation(ctx) != metav1.FieldValidationStrict {
		return nil
	}
	var errs field.ErrorList
	for _, f := range s.disabledFields(next, prev) {
		errs = append(errs, field.Forbidden(f.path, fmt.Sprintf("must not be set while the feature gate %s of the API server is off", f.gate)))
	}
	return errs
}

// dropDisabledStatus removes counters and times of features that are off, unless the stored status has them already. The
// count of executions stands still while its feature is off.
func dropDisabledStatus(next, prev *jobset.JobSetStatus, gates gates.Gates) {
	if !gates.InPlaceRestart && prev.PreviousInPlaceRestartAttempt == nil && prev.CurrentInPlaceRestartAttempt == nil {
		next.PreviousInPlaceRestartAttempt, next.CurrentInPlaceRestartAttempt = nil, nil
	}
	if !gates.JobSetActiveDeadlineSeconds && prev.StartTime == nil {
		next.StartTime = nil
	}
	if !gates.ExecutionAttemptsTracking {
		next.ExecutionAttempts = prev.ExecutionAttempts // numbers that were given out must stay known for later counting
	}
	if gates.RestartJob || countsSingleJobs(prev) {
		return
	}
	for i := range next.ReplicatedJobsStatus {
		next.ReplicatedJobsStatus[i].JobRestarts = nil
		next.ReplicatedJobsStatus[i].JobRestartsCountTowardsMax = nil
	}
}

func countsSingleJobs(status *jobset.JobSetStatus) bool {
	for _, rj := range status.ReplicatedJobsStatus {
		if len(rj.JobRestarts) > 0 || len(rj.JobRestartsCountTowardsMax) > 0 {
			return true
		}
	}
	return false
}
