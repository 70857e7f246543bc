// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// validateElastic checks a change of the size of an Indexed Job. The texts of the last three errors are known to clients.
func validateElastic(next, prev *jobset.ReplicatedJob, stored *jobset.JobSetStatus, path *field.Path) field.ErrorList {
	job, was := &next.Template.Spec, &prev.Template.Spec
	parallelismChanged := !equality.Semantic.DeepEqual(job.Parallelism, was.Parallelism)
	completionsChanged := !equality.Semantic.DeepEqual(job.Completions, was.Completions)
	if !parallelismChanged && !completionsChanged {
		return nil
	}
	if finished(stored) {
		return field.ErrorList{field.Forbidden(path, "must not change in size once the JobSet has finished: create a new JobSet")}
	}
	var errs field.ErrorList
	if completionsChanged && job.Completions == nil {
		errs = append(errs, field.Required(path.Child("completions"), "must be set: the Job controller refuses Indexed Jobs without completions"))
	}
	if parallelismChanged && job.Parallelism != nil && *job.Parallelism < 1 {
		errs = append(errs, field.Invalid(path.Child("parallelism"), *job.Parallelism, "parallelism must be >= 1"))
	}
	if completionsChanged && job.Completions != nil && *job.Completions < 1 {
		errs = append(errs, field.Invalid(path.Child("completions"), *job.Completions, "completions must be >= 1"))
	}
	if job.Parallelism != nil && job.Completions != nil && *job.Parallelism != *job.Completions {
		errs = append(errs, field.Invalid(path.Child("completions"), *job.Completions,
			"completions must be equal to parallelism for Elastic Indexed Jobs"))
	}
	return errs
}

func finished(status *jobset.JobSetStatus) bool {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Status == metav1.ConditionTrue && (c.Type == jobset.ConditionCompleted || c.Type == jobset.ConditionFailed) {
			return true
		}
	}
	return false
}
