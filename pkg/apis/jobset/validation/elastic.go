// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// validateElastic checks a change of the size of an Indexed Job. The texts of the last three errors are known to clients.
func validateElastic(next, prev *jobset.ReplicatedJob, stored *jobset.JobSetStatus, path *field.Path) field.ErrorList {
	job, was := &next.Template.Spec, &prev.Template.Spec
	if equality.Semantic.DeepEqual(job.Parallelism, was.Parallelism) && equality.Semantic.DeepEqual(job.Completions, was.Completions) {
		return nil
	}
	if finished(stored) {
		return field.ErrorList{field.Forbidden(path, "parallelism and completions "+finishedAlready)}
	}
	var errs field.ErrorList
	if job.Completions == nil && was.Completions != nil {
		errs = append(errs, field.Required(path.Child("completions"), "must be set: a Job with completionMode Indexed needs completions"))
	}
	errs = append(errs, validateNewSize(job.Parallelism, was.Parallelism, path, "parallelism")...)
	errs = append(errs, validateNewSize(job.Completions, was.Completions, path, "completions")...)
	if job.Parallelism != nil && job.Completions != nil && *job.Parallelism != *job.Completions {
		errs = append(errs, field.Invalid(path.Child("completions"), *job.Completions,
			fmt.Sprintf("completions must be equal to parallelism for Elastic Indexed Jobs, which is %d: change both", *job.Parallelism)))
	}
	return errs
}

// validateNewSize checks a size that differs from the stored one.
func validateNewSize(next, prev *int32, path *field.Path, name string) field.ErrorList {
	if next == nil || *next >= 1 || equality.Semantic.DeepEqual(next, prev) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child(name), *next, name+" must be >= 1; suspend the JobSet to stop its pods")}
}
