// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

const maxManagedByLength = 63

// ManagedByOther returns whether another controller makes something of the set: maybe not the Jobs that the templates describe.
func ManagedByOther(spec *jobset.JobSetSpec) bool {
	return spec.ManagedBy != nil && *spec.ManagedBy != jobset.ControllerName
}

func validateManagedBy(managedBy *string, path *field.Path) field.ErrorList {
	if managedBy == nil {
		return nil
	}
	if *managedBy == "" {
		return field.ErrorList{field.Required(path, "must not be empty: leave it out for the built-in controller")}
	}
	if len(*managedBy) > maxManagedByLength {
		return field.ErrorList{field.TooLong(path, "", maxManagedByLength)}
	}
	if len(validation.IsDomainPrefixedPath(path, *managedBy)) > 0 {
		return field.ErrorList{field.Invalid(path, *managedBy, "must be a DNS name and a path, such as example.com/controller")}
	}
	return nil
}

func validateManagedByUpdate(next, prev *string, path *field.Path) field.ErrorList {
	return changed(next, prev, path, func(string) string { return fieldImmutable })
}
