// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
)

// ValidateLeaderWorkerSetRestart checks a request to restart groups. Whether the group exists is known once the set was read.
func ValidateLeaderWorkerSetRestart(spec *batch.LeaderWorkerSetRestartSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateReason(spec.Reason, path)
	if spec.Group != nil {
		errs = append(errs, validateNotNegative(*spec.Group, path.Child("group"))...)
	}
	return append(errs, validateGroupPreconditions(spec.Preconditions, spec.Group != nil, path,
		"may be set only with spec.group, whose restarts it is about: leave it out, or set spec.group")...)
}

// ValidateLeaderWorkerSetRollback checks a request to return to a former revision. Whether it exists is known once the revisions were read.
func ValidateLeaderWorkerSetRollback(spec *batch.LeaderWorkerSetRollbackSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateReason(spec.Reason, path)
	errs = append(errs, validateNotNegative(spec.ToRevision, path.Child("toRevision"))...)
	return append(errs, validateGroupPreconditions(spec.Preconditions, false, path, onlyForRestarts)...)
}

const onlyForRestarts = "may be set only in requests to restart a group: leave it out"

// ValidateLeaderWorkerSetAction checks a request to pause or resume.
func ValidateLeaderWorkerSetAction(spec *batch.LeaderWorkerSetActionSpec) field.ErrorList {
	path := field.NewPath("spec")
	return append(validateReason(spec.Reason, path), validateGroupPreconditions(spec.Preconditions, false, path, onlyForRestarts)...)
}

// validateGroupPreconditions checks preconditions. The number of restarts counts those of one group.
func validateGroupPreconditions(p *batch.LeaderWorkerSetPreconditions, group bool, path *field.Path, why string) field.ErrorList {
	if p == nil {
		return nil
	}
	path = path.Child("preconditions")
	var errs field.ErrorList
	if p.UID != nil && len(*p.UID) > maxUIDLength {
		errs = append(errs, field.TooLong(path.Child("uid"), "", maxUIDLength))
	}
	if p.Generation != nil {
		errs = append(errs, validateNotNegative(*p.Generation, path.Child("generation"))...)
	}
	switch {
	case p.Restarts == nil:
	case !group:
		errs = append(errs, field.Forbidden(path.Child("restarts"), why))
	default:
		errs = append(errs, validateNotNegative(*p.Restarts, path.Child("restarts"))...)
	}
	return errs
}
