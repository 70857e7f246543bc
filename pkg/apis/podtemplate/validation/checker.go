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

// present reports a key that is missing. Typed decoding does not distinguish a missing key from a zero value, so only keys
// whose zero value no child can have are checked.
func (c *checker) present(path *field.Path, ok bool) {
	if !ok {
		c.errs = append(c.errs, field.Required(path, "must be set"))
	}
}

// text reports a missing or empty string.
func (c *checker) text(path *field.Path, value string) { c.present(path, value != "") }

// unique reports items whose key an earlier item of the list has.
func unique[T any](c *checker, list *field.Path, items []T, key func(*T) string) {
	seen := make(map[string]struct{}, len(items))
	for i := range items {
		k := key(&items[i])
		if _, dup := seen[k]; dup {
			c.errs = append(c.errs, Duplicate(list.Index(i), k))
		}
		seen[k] = struct{}{}
	}
}

// Duplicate is the error of a list item whose key an earlier item has.
func Duplicate(path *field.Path, key any) *field.Error {
	err := field.Duplicate(path, key)
	err.Detail = "must be unique in the list: remove or rename one of the two"
	return err
}
