// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxManagedByLength = 63

// ValidateManagedBy checks the name of the controller that acts on an object.
func ValidateManagedBy(managedBy *string, path *field.Path) field.ErrorList {
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
