// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// validateMetadata checks which keys Jobs and pods are to get.
func validateMetadata(js *jobset.JobSet) field.ErrorList {
	value, set := js.Annotations[jobset.MetadataKey]
	if !set || value == jobset.MetadataCompact {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(jobset.MetadataKey)
	return field.ErrorList{field.NotSupported(path, value, []string{jobset.MetadataCompact})}
}
