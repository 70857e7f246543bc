// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxManagedByLength = 63

func validateManagedBy(managedBy *string, path *field.Path) field.ErrorList {
	if managedBy == nil {
		return nil
	}
	if *managedBy == "" {
		return field.ErrorList{field.Required(path, "must not be empty: leave it out for the built-in controller")}
	}
	errs := validation.IsDomainPrefixedPath(path, *managedBy)
	if len(*managedBy) > maxManagedByLength {
		errs = append(errs, field.TooLong(path, "", maxManagedByLength))
	}
	return errs
}

func validateManagedByUpdate(next, prev *string, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(next, prev) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, valueOf(next),
		apivalidation.FieldImmutableErrorMsg+": must not change after creation; create a new JobSet for another controller")}
}
