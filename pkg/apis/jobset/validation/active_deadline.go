// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// finishedAlready is what users read about a field that can be changed until the set has finished.
const finishedAlready = "cannot be changed after the JobSet has finished; delete and recreate the JobSet"

func validateActiveDeadline(seconds *int64, path *field.Path) field.ErrorList {
	if seconds == nil || *seconds >= 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *seconds, "must be 1 or more; leave it out for no limit")}
}

func validateActiveDeadlineUpdate(next, prev *jobset.JobSet, path *field.Path) field.ErrorList {
	if !finished(&prev.Status) || equality.Semantic.DeepEqual(next.Spec.ActiveDeadlineSeconds, prev.Spec.ActiveDeadlineSeconds) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, finishedAlready)}
}
