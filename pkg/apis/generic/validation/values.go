// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Count checks a count of a status. The error leaves the value out: a stored negative count may go on to be counted up.
func Count[T int32 | int64](count T, path *field.Path) field.ErrorList {
	if count >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be 0 or more")}
}

// ValueOf returns the value of a pointer for an error, or a value that is left out of the error if the pointer is nil.
func ValueOf[T any](p *T) any {
	if p == nil {
		return field.OmitValueType{}
	}
	return *p
}

// Status checks a change of a status, or of the status of an object. Lists that are too long, and longer than before, are reported alone.
func Status[T any](next, prev T, sizes func(T) *Sizes, validate func(T) field.ErrorList) field.ErrorList {
	if errs := sizes(next).Grown(func() *Sizes { return sizes(prev) }); len(errs) > 0 {
		return errs
	}
	return Introduced(validate(next), validate(prev))
}
