// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation checks DisaggregatedSets and their scalers (docs/reference/leaderworkerset.md#disaggregatedset).
package validation

import (
	"fmt"
	"regexp"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	lwsvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

const (
	minRoles, maxRoles = 2, 10
	// maxSliceObjects bounds the objects in the lists of all LeaderWorkerSets of one revision. They are as many as the
	// objects of the set, for each slice.
	maxSliceObjects = 100_000
	maxSlices       = 100
	maxRoleName     = 63
	// maxRoleStatuses bounds the list that the controller writes: the roles of the set.
	maxRoleStatuses = 100
	// revisionLength is the length of the revision in names of children.
	revisionLength = 8
)

var roleNames = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// ValidateDisaggregatedSetCreate checks a new set, after defaulting.
func ValidateDisaggregatedSetCreate(ds *disaggregatedset.DisaggregatedSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&ds.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if sizes := sizesOf(ds).Grown(func() *generic.Sizes { return &generic.Sizes{} }); len(sizes) > 0 {
		return append(errs, sizes...)
	}
	errs = append(errs, validateSpec(ds)...)
	return append(errs, validateChildNames(ds, errs)...)
}

// ValidateDisaggregatedSetUpdate checks a change of the spec: what it introduces must be right. The caller has checked
// the change of the metadata.
func ValidateDisaggregatedSetUpdate(next, prev *disaggregatedset.DisaggregatedSet) field.ErrorList {
	if errs := sizesOf(next).Grown(func() *generic.Sizes { return sizesOf(prev) }); len(errs) > 0 {
		return errs
	}
	errs := generic.Introduced(validateSpec(next), validateSpec(prev))
	// LeaderWorkerSets that exist may grow beyond what their name leaves room for; new ones are refused.
	return append(errs, generic.Introduced(validateChildNames(stopped(next), errs), validateChildNames(stopped(prev), nil))...)
}

// sizesOf are the lists of a set that are too long. What is in them is not looked at.
func sizesOf(ds *disaggregatedset.DisaggregatedSet) *generic.Sizes {
	s := &generic.Sizes{}
	s.List(field.NewPath("spec", "roles"), len(ds.Spec.Roles), maxRoles)
	objects := lwsvalidation.BoundObjects(s, &ds.Spec)
	s.Sum(field.NewPath("spec", "slices"), objects*int64(ptr.Deref(ds.Spec.Slices, 1)), maxSliceObjects,
		"must have at most %d objects in the lists of all slices together, such as containers, variables and volumes; there would be %d. Use "+
			"fewer slices, or smaller templates")
	return s
}

func validateSpec(ds *disaggregatedset.DisaggregatedSet) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateSlices(ds, path.Child("slices"))
	errs = append(errs, validatePlacement(ds.Spec.PlacementPolicy, path.Child("placementPolicy"))...)
	roles := path.Child("roles")
	if n := len(ds.Spec.Roles); n < minRoles {
		errs = append(errs, field.Invalid(roles, n, fmt.Sprintf("must have from %d to %d roles", minRoles, maxRoles)))
	}
	seen := map[string]bool{}
	for i := range ds.Spec.Roles {
		role, at := &ds.Spec.Roles[i], roles.Index(i)
		if seen[role.Name] {
			errs = append(errs, podtemplate.Duplicate(at, role.Name))
		}
		seen[role.Name] = true
		errs = append(errs, validateRole(ds, role, at)...)
	}
	return append(errs, validateReplicasTogether(ds.Spec.Roles, path)...)
}

func validateSlices(ds *disaggregatedset.DisaggregatedSet, path *field.Path) field.ErrorList {
	slices := ptr.Deref(ds.Spec.Slices, 1)
	var errs field.ErrorList
	if slices < 1 || slices > maxSlices {
		errs = append(errs, field.Invalid(path, slices, fmt.Sprintf("must be from 1 to %d", maxSlices)))
	}
	if slices > 1 && slicesHaveScalers(ds) {
		errs = append(errs, field.Forbidden(path, "must be 1 while a role has scaling.mode External: one scaler cannot scale several slices"))
	}
	return errs
}

func slicesHaveScalers(ds *disaggregatedset.DisaggregatedSet) bool {
	return slices.ContainsFunc(ds.Spec.Roles, func(r disaggregatedset.DisaggregatedRoleSpec) bool { return external(&r) })
}

func external(role *disaggregatedset.DisaggregatedRoleSpec) bool {
	return role.Scaling != nil && role.Scaling.Mode == disaggregatedset.RoleScalingExternal
}

var placements = []disaggregatedset.PlacementPolicyType{
	disaggregatedset.PlacementNone, disaggregatedset.PlacementExclusiveSlice, disaggregatedset.PlacementExclusiveTopology,
}

func validatePlacement(policy *disaggregatedset.PlacementPolicy, path *field.Path) field.ErrorList {
	if policy == nil {
		return nil
	}
	if !slices.Contains(placements, policy.Type) {
		return field.ErrorList{field.NotSupported(path.Child("type"), policy.Type, placements)}
	}
	if policy.Type == disaggregatedset.PlacementNone {
		return nil
	}
	if policy.Topology == "" {
		return field.ErrorList{field.Required(path.Child("topology"), fmt.Sprintf("must be the key of a node label if type is %s", policy.Type))}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(policy.Topology) {
		errs = append(errs, field.Invalid(path.Child("topology"), policy.Topology, "must be the key of a node label: "+problem))
	}
	return errs
}

// validateReplicasTogether lets a set start and stop as a whole: roles without groups are of no use beside roles with
// groups. Those that are scaled by others do not count.
func validateReplicasTogether(roles []disaggregatedset.DisaggregatedRoleSpec, path *field.Path) field.ErrorList {
	some, none := false, false
	for i := range roles {
		if external(&roles[i]) {
			continue
		}
		stopped := ptr.Deref(roles[i].Spec.Replicas, 0) == 0
		some, none = some || !stopped, none || stopped
	}
	if !some || !none {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{},
		"must have replicas of 0 in all roles or in none, except for roles with scaling.mode External")}
}

// Warnings returns what is accepted, and has no effect or may fail.
func Warnings(ds *disaggregatedset.DisaggregatedSet) (warnings []string) {
	for i := range ds.Spec.Roles {
		role := &ds.Spec.Roles[i]
		warnings = append(warnings, childNameWarnings(ds, i)...)
		if n := ptr.Deref(role.Spec.Replicas, 1); external(role) && n > 1 {
			warnings = append(warnings, fmt.Sprintf("spec.roles[%d].spec.replicas: %d is ignored because scaling.mode is External; scale "+
				"disaggregatedsetrolescaler %s-%s instead",
				i, n, ds.Name, role.Name))
		}
	}
	return warnings
}

// ValidateDisaggregatedSetStatusUpdate checks a change of the status.
func ValidateDisaggregatedSetStatusUpdate(next, prev *disaggregatedset.DisaggregatedSet) field.ErrorList {
	sizes := func(status *disaggregatedset.DisaggregatedSetStatus) *generic.Sizes {
		s := &generic.Sizes{}
		s.List(field.NewPath("status", "conditions"), len(status.Conditions), generic.MaxConditions)
		s.List(field.NewPath("status", "roleStatuses"), len(status.RoleStatuses), maxRoleStatuses)
		return s
	}
	return generic.Status(&next.Status, &prev.Status, sizes, validateStatus)
}

func validateStatus(status *disaggregatedset.DisaggregatedSetStatus) field.ErrorList {
	path := field.NewPath("status")
	errs := metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))
	seen := map[string]bool{}
	for i, role := range status.RoleStatuses {
		at := path.Child("roleStatuses").Index(i)
		if seen[role.Name] {
			errs = append(errs, podtemplate.Duplicate(at, role.Name))
		}
		seen[role.Name] = true
		errs = append(errs, generic.Count(role.Replicas, at.Child("replicas"))...)
		errs = append(errs, generic.Count(role.ReadyReplicas, at.Child("readyReplicas"))...)
		errs = append(errs, generic.Count(role.UpdatedReplicas, at.Child("updatedReplicas"))...)
	}
	return errs
}

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
	sizes := func(status *disaggregatedset.DisaggregatedSetRoleScalerStatus) *generic.Sizes {
		s := &generic.Sizes{}
		s.List(field.NewPath("status", "conditions"), len(status.Conditions), generic.MaxConditions)
		return s
	}
	return generic.Status(&next.Status, &prev.Status, sizes, validateScalerStatus)
}

func validateScalerStatus(status *disaggregatedset.DisaggregatedSetRoleScalerStatus) field.ErrorList {
	path := field.NewPath("status")
	errs := metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))
	errs = append(errs, generic.Count(status.Replicas, path.Child("replicas"))...)
	return append(errs, generic.BytesWithin(status.Selector, maxSelector, path.Child("selector"))...)
}
