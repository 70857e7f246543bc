// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// UsesInPlaceRestart reports whether the spec needs the feature gate InPlaceRestart.
func UsesInPlaceRestart(spec *jobset.JobSetSpec) bool {
	return spec.FailurePolicy != nil && spec.FailurePolicy.RestartStrategy == jobset.RestartStrategyInPlaceRestart
}

// validateInPlaceRestart checks what restarting containers in their pods needs of the Jobs: that the Job controller
// neither gives up on failed pods nor replaces them early, and that every pod runs at the same time.
func validateInPlaceRestart(spec *jobset.JobSetSpec, opts gates.Gates, path *field.Path) field.ErrorList {
	if !opts.InPlaceRestart || !UsesInPlaceRestart(spec) {
		return nil
	}
	var errs field.ErrorList
	for i := range spec.ReplicatedJobs {
		job, p := &spec.ReplicatedJobs[i].Template.Spec, path.Child("replicatedJobs").Index(i).Child("template", "spec")
		if ptr.Deref(job.BackoffLimit, 0) != math.MaxInt32 {
			errs = append(errs, field.Invalid(p.Child("backoffLimit"), valueOf(job.BackoffLimit),
				fmt.Sprintf("must be %d with the restart strategy InPlaceRestart", math.MaxInt32)))
		}
		if ptr.Deref(job.PodReplacementPolicy, "") != batchv1.Failed {
			errs = append(errs, field.Invalid(p.Child("podReplacementPolicy"), valueOf(job.PodReplacementPolicy),
				"must be Failed with the restart strategy InPlaceRestart"))
		}
		if job.Completions == nil || job.Parallelism == nil || *job.Completions != *job.Parallelism {
			errs = append(errs, field.Invalid(p.Child("completions"), valueOf(job.Completions),
				"must be set and equal to parallelism with the restart strategy InPlaceRestart"))
		}
	}
	return errs
}
