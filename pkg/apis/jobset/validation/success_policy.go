// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

var operators = []jobset.Operator{jobset.OperatorAll, jobset.OperatorAny}

func validateSuccessPolicy(spec *jobset.JobSetSpec, path *field.Path) field.ErrorList {
	policy := spec.SuccessPolicy
	if policy == nil {
		return nil
	}
	errs := enum(path.Child("operator"), policy.Operator, operators)
	return append(errs, validateTargets(jobNames(spec), policy.TargetReplicatedJobs, path.Child("targetReplicatedJobs"))...)
}
