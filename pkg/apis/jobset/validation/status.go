// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// validateStatus checks the limits of the published schema, and that counts are not negative. The controller is trusted with
// what the values mean.
func validateStatus(js *jobset.JobSet) field.ErrorList {
	path, status := field.NewPath("status"), &js.Status
	errs := metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))
	errs = append(errs, generic.Count(status.Restarts, path.Child("restarts"))...)
	errs = append(errs, generic.Count(status.RestartsCountTowardsMax, path.Child("restartsCountTowardsMax"))...)
	errs = append(errs, validateJobStatuses(status.ReplicatedJobsStatus, path.Child("replicatedJobsStatus"))...)
	errs = append(errs, validateAttempt(status.PreviousInPlaceRestartAttempt, path.Child("previousInPlaceRestartAttempt"))...)
	errs = append(errs, validateAttempt(status.CurrentInPlaceRestartAttempt, path.Child("currentInPlaceRestartAttempt"))...)
	errs = append(errs, validateAttempt(status.ExecutionAttempts, path.Child("executionAttempts"))...)
	errs = append(errs, validateAttempts(status.Attempts, path.Child("attempts"))...)
	errs = append(errs, validatePlacement(status.Placement, path.Child("placement"))...)
	if status.ReadyMilliseconds < 0 {
		errs = append(errs, field.Invalid(path.Child("readyMilliseconds"), status.ReadyMilliseconds, "must be 0 or more"))
	}
	if status.GoodMilliseconds < 0 {
		errs = append(errs, field.Invalid(path.Child("goodMilliseconds"), status.GoodMilliseconds, "must be 0 or more"))
	}
	return append(errs, generic.Count(status.AddedRestarts, path.Child("addedRestarts"))...)
}

func validateJobStatuses(statuses []jobset.ReplicatedJobStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]struct{}{}
	for i := range statuses {
		status, p := &statuses[i], path.Index(i)
		if status.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), "must be the name of the replicatedJob that is counted"))
		}
		if _, dup := seen[status.Name]; dup {
			errs = append(errs, podtemplate.Duplicate(p, status.Name))
		}
		seen[status.Name] = struct{}{}
		errs = append(errs, validateJobCounts(status, p)...)
	}
	return errs
}

func validateJobCounts(status *jobset.ReplicatedJobStatus, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		generic.Count(status.Ready, path.Child("ready")),
		generic.Count(status.Succeeded, path.Child("succeeded")),
		generic.Count(status.Failed, path.Child("failed")),
		generic.Count(status.Active, path.Child("active")),
		generic.Count(status.Suspended, path.Child("suspended")),
	)
	for i, n := range status.JobRestarts {
		errs = append(errs, generic.Count(n, path.Child("jobRestarts").Index(i))...)
	}
	for i, n := range status.JobRestartsCountTowardsMax {
		errs = append(errs, generic.Count(n, path.Child("jobRestartsCountTowardsMax").Index(i))...)
	}
	return errs
}

func validateAttempt(attempt *int32, path *field.Path) field.ErrorList {
	if attempt == nil || *attempt >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *attempt, "must be 0 or more")}
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
