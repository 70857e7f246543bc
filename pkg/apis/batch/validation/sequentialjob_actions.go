// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
)

// ValidateSequentialJobRetry checks a request to retry. Whether the step exists is known once the sequence was read.
func ValidateSequentialJobRetry(spec *batch.SequentialJobRetrySpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateReason(spec.Reason, path)
	errs = append(errs, validateStepReference(spec.FromStep, path.Child("fromStep"))...)
	return append(errs, validateSequencePreconditions(spec.Preconditions, path)...)
}

// ValidateSequenceAction checks a request to restart the current step, or to suspend, resume or cancel.
func ValidateSequenceAction(spec *batch.SequentialJobActionSpec) field.ErrorList {
	path := field.NewPath("spec")
	return append(validateReason(spec.Reason, path), validateSequencePreconditions(spec.Preconditions, path)...)
}

func validateSequencePreconditions(p *batch.SequentialJobPreconditions, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	path = path.Child("preconditions")
	errs := validateStepReference(p.Step, path.Child("step"))
	if p.Attempt != nil {
		errs = append(errs, validateNotNegative(*p.Attempt, path.Child("attempt"))...)
	}
	return errs
}

// validateStepReference bounds the name of a step, which the server repeats in its response.
func validateStepReference(name string, path *field.Path) field.ErrorList {
	if len(name) <= validation.DNS1123LabelMaxLength {
		return nil
	}
	return field.ErrorList{field.TooLong(path, "", validation.DNS1123LabelMaxLength)}
}
