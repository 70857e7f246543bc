// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation checks the templates of Jobs, pods and volume claims that API objects embed, for every kind. It checks
// what the published schema of these templates checks: keys that must be present and items that must be unique. What the
// values mean is left to the main API server, which sees them when the child is created.
package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checker collects the errors of a walk through an embedded template.
type checker struct {
	errs field.ErrorList
}

// Duplicate is the error of a list item whose key an earlier item has.
func Duplicate(path *field.Path, key any) *field.Error {
	err := field.Duplicate(path, key)
	err.Detail = "must be unique in the list: remove or rename one of the two"
	return err
}
