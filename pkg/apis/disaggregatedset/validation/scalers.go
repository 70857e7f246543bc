// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	lwsvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

// maxSelector is the longest selector in a status, in bytes.
const maxSelector = 4096

// ValidateScalerCreate checks a new scaler, after defaulting.
func ValidateScalerCreate(s *disaggregatedset.DisaggregatedSetRoleScaler) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&s.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateScalerSpec(s)...)
}

// ValidateScalerUpdate checks a change of the spec. The caller has checked the change of the metadata.
func ValidateScalerUpdate(next, prev *disaggregatedset.DisaggregatedSetRoleScaler) field.ErrorList {
	return generic.Introduced(validateScalerSpec(next), validateScalerSpec(prev))
}

func validateScalerSpec(s *disaggregatedset.DisaggregatedSetRoleScaler) field.ErrorList {
	return lwsvalidation.ValidateReplicas(s.Spec.Replicas, field.NewPath("spec", "replicas"))
}

// ValidateScalerStatusUpdate checks a change of the status.
func ValidateScalerStatusUpdate(next, prev *disaggregatedset.DisaggregatedSetRoleScaler) field.ErrorList {
	sizes := func(s *disaggregatedset.DisaggregatedSetRoleScaler) *generic.Sizes {
		sizes := &generic.Sizes{}
		sizes.List(field.NewPath("status", "conditions"), len(s.Status.Conditions), generic.MaxConditions)
		return sizes
	}
	if errs := sizes(next).Grown(func() *generic.Sizes { return sizes(prev) }); len(errs) > 0 {
		return errs
	}
	return generic.Introduced(validateScalerStatus(&next.Status), validateScalerStatus(&prev.Status))
}

func validateScalerStatus(status *disaggregatedset.DisaggregatedSetRoleScalerStatus) field.ErrorList {
	path := field.NewPath("status")
	errs := metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))
	errs = append(errs, validateCount(status.Replicas, path.Child("replicas"))...)
	return append(errs, generic.BytesWithin(status.Selector, maxSelector, path.Child("selector"))...)
}
