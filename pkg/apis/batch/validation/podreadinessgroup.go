// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
)

// MaxGroupMembers is the largest number of pods that a group can ask for.
const MaxGroupMembers = 100_000

var (
	readyWhens  = []batch.ReadyWhen{batch.ReadyWhenRunning, batch.ReadyWhenReady}
	groupPhases = []batch.PodReadinessGroupPhase{batch.GroupPending, batch.GroupReady, batch.GroupDegraded}
)

// ValidatePodReadinessGroupCreate checks a new PodReadinessGroup, after defaulting.
func ValidatePodReadinessGroupCreate(group *batch.PodReadinessGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&group.ObjectMeta, true, groupName, field.NewPath("metadata"))
	return append(errs, validateGroupSpec(&group.Spec)...)
}

// ValidatePodReadinessGroupUpdate checks a change of the spec. The caller has checked the change of the metadata.
func ValidatePodReadinessGroupUpdate(next, prev *batch.PodReadinessGroup) field.ErrorList {
	return generic.Introduced(validateGroupSpec(&next.Spec), validateGroupSpec(&prev.Spec))
}

// ValidatePodReadinessGroupStatusUpdate checks a change of the status.
func ValidatePodReadinessGroupStatusUpdate(next, prev *batch.PodReadinessGroup) field.ErrorList {
	return generic.Status(&next.Status, &prev.Status, groupSizes, validateGroupStatus)
}

func groupSizes(status *batch.PodReadinessGroupStatus) *generic.Sizes {
	s := &generic.Sizes{}
	s.List(field.NewPath("status", "conditions"), len(status.Conditions), generic.MaxConditions)
	return s
}

// groupName checks the name of a group, which is the value of the label of its pods.
func groupName(name string, prefix bool) []string {
	if len(apivalidation.NameIsDNSSubdomain(name, prefix)) > 0 || len(validation.IsValidLabelValue(name)) > 0 {
		return []string{"must have at most 63 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit, because " +
			"it is the value of a label"}
	}
	return nil
}

func validateGroupSpec(spec *batch.PodReadinessGroupSpec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if n := spec.MinMember; n != nil && (*n < 1 || *n > MaxGroupMembers) {
		errs = append(errs, field.Invalid(path.Child("minMember"), *n,
			fmt.Sprintf("must be from 1 to %d; leave it out for the size that the pods or their owners give", MaxGroupMembers)))
	}
	if !slices.Contains(readyWhens, spec.ReadyWhen) {
		errs = append(errs, field.NotSupported(path.Child("readyWhen"), spec.ReadyWhen, readyWhens))
	}
	return errs
}

func validateGroupStatus(status *batch.PodReadinessGroupStatus) field.ErrorList {
	path := field.NewPath("status")
	errs := metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))
	if status.Phase != "" && !slices.Contains(groupPhases, status.Phase) {
		errs = append(errs, field.NotSupported(path.Child("phase"), status.Phase, groupPhases))
	}
	errs = append(errs, generic.Count(status.Pods, path.Child("pods"))...)
	errs = append(errs, generic.Count(status.Running, path.Child("running"))...)
	return append(errs, generic.Count(status.Ready, path.Child("ready"))...)
}
