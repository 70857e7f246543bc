// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation checks requests that act on JobSets, as far as that can be done without the JobSet.
package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
)

const (
	maxReasonLength = 1024
	// maxUIDLength is the longest UID that a precondition may have. Those of this server have 36 characters.
	maxUIDLength = 128
)

var scopes = []batch.RestartScope{batch.RestartScopeJobSet, batch.RestartScopeReplicatedJob, batch.RestartScopeJob}

// ValidateRestart checks a request to restart.
func ValidateRestart(spec *batch.JobSetRestartSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateTarget(spec, path)
	errs = append(errs, validateReason(spec.Reason, path)...)
	return append(errs, validatePreconditions(spec.Preconditions, path)...)
}

// ValidateRetry checks a request to retry.
func ValidateRetry(spec *batch.JobSetRetrySpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateReason(spec.Reason, path)
	errs = append(errs, validateNotNegative(spec.MaxRestarts, path.Child("maxRestarts"))...)
	return append(errs, validatePreconditions(spec.Preconditions, path)...)
}

// ValidateAction checks a request to suspend, resume or cancel.
func ValidateAction(spec *batch.JobSetActionSpec) field.ErrorList {
	path := field.NewPath("spec")
	return append(validateReason(spec.Reason, path), validatePreconditions(spec.Preconditions, path)...)
}

// validateTarget checks that a restart names what its scope is about, and nothing else.
func validateTarget(spec *batch.JobSetRestartSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	replicatedJob, jobIndex := path.Child("replicatedJob"), path.Child("jobIndex")
	switch spec.Scope {
	case batch.RestartScopeJobSet:
		if spec.ReplicatedJob != "" {
			errs = append(errs, field.Forbidden(replicatedJob, "must not be set when the scope is JobSet: leave it out, or set the scope to "+
				"ReplicatedJob"))
		}
	case batch.RestartScopeReplicatedJob, batch.RestartScopeJob:
		if spec.ReplicatedJob == "" {
			errs = append(errs, field.Required(replicatedJob, "must name a replicatedJob when the scope is "+string(spec.Scope)))
		}
	default:
		return field.ErrorList{field.NotSupported(path.Child("scope"), spec.Scope, scopes)}
	}
	switch {
	case spec.Scope != batch.RestartScopeJob && spec.JobIndex != nil:
		errs = append(errs, field.Forbidden(jobIndex, "must not be set when the scope is "+string(spec.Scope)+
			": leave it out, or set the scope to Job"))
	case spec.Scope == batch.RestartScopeJob && spec.JobIndex == nil:
		errs = append(errs, field.Required(jobIndex, "must be the index of a Job when the scope is Job"))
	case spec.JobIndex != nil:
		errs = append(errs, validateNotNegative(*spec.JobIndex, jobIndex)...)
	}
	return errs
}

func validateReason(reason string, path *field.Path) field.ErrorList {
	return generic.LineWithin(reason, maxReasonLength, path.Child("reason"))
}

func validatePreconditions(p *batch.ActionPreconditions, path *field.Path) field.ErrorList {
	if p == nil || p.Attempt == nil {
		return nil
	}
	return validateNotNegative(*p.Attempt, path.Child("preconditions", "attempt"))
}

func validateNotNegative[N int32 | int64](n N, path *field.Path) field.ErrorList {
	if n >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, n, "must be 0 or more")}
}
