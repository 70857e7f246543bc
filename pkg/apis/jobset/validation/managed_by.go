// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// ManagedByOther returns whether another controller makes something of the set: maybe not the Jobs that the templates describe.
func ManagedByOther(spec *jobset.JobSetSpec) bool {
	return spec.ManagedBy != nil && *spec.ManagedBy != jobset.ControllerName
}

func validateManagedByUpdate(next, prev *string, path *field.Path) field.ErrorList {
	return generic.Changed(next, prev, path, func(string) string { return fieldImmutable })
}
