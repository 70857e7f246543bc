// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// validateServiceEndpoints checks who is to write the addresses of the headless Service.
func validateServiceEndpoints(js *jobset.JobSet) field.ErrorList {
	known := []string{jobset.ServiceEndpointsCluster, jobset.ServiceEndpointsController}
	value, set := js.Annotations[jobset.ServiceEndpointsKey]
	if !set || slices.Contains(known, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath("metadata", "annotations").Key(jobset.ServiceEndpointsKey), value, known)}
}
