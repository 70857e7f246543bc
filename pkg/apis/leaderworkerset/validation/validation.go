// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation checks LeaderWorkerSets. Its functions are pure: objects in, errors out.
//
// A new object must satisfy every rule. An update must satisfy the rules on what may change, and must not bring in an error of its
// own: an error that the stored object has too is tolerated. A write of the scale subresource can lead to such objects, because only
// the range of replicas is checked there. What the pods of templates mean is left to the main API server.
package validation

import (
	"reflect"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// MaxObjects is the largest number of items in all lists of objects of a spec.
const MaxObjects = 20_000

// ValidateLeaderWorkerSetCreate checks a new set, after defaulting. Lists that are too long are reported alone.
func ValidateLeaderWorkerSetCreate(lws *leaderworkerset.LeaderWorkerSet) field.ErrorList {
	if errs := specSizes(&lws.Spec).Grown(func() *generic.Sizes { return &generic.Sizes{} }); len(errs) > 0 {
		return errs
	}
	errs := apivalidation.ValidateObjectMeta(&lws.ObjectMeta, true, setName, field.NewPath("metadata"))
	errs = append(errs, validateNameLength(lws)...)
	return append(errs, validateSet(lws)...)
}

// ValidateLeaderWorkerSetUpdate checks a change of a set. The caller has checked the change of the metadata. Lists that are too long,
// and longer than in the stored object, are reported alone.
func ValidateLeaderWorkerSetUpdate(next, prev *leaderworkerset.LeaderWorkerSet) field.ErrorList {
	if errs := specSizes(&next.Spec).Grown(func() *generic.Sizes { return specSizes(&prev.Spec) }); len(errs) > 0 {
		return errs
	}
	errs := validateTransition(&next.Spec, &prev.Spec)
	return append(errs, generic.Introduced(validateSet(next), validateSet(prev))...)
}

// ValidateLeaderWorkerSetScale checks a change of the scale: only the range of replicas. Autoscalers may choose any size.
func ValidateLeaderWorkerSetScale(lws *leaderworkerset.LeaderWorkerSet) field.ErrorList {
	return ValidateReplicas(ptr.Deref(lws.Spec.Replicas, 1), field.NewPath("spec", "replicas"))
}

// specSizes measures a spec. It is cheap whatever the spec holds, so that it comes before every other check.
func specSizes(spec *leaderworkerset.LeaderWorkerSetSpec) *generic.Sizes {
	s := &generic.Sizes{}
	BoundObjects(s, spec)
	return s
}

// BoundObjects bounds the objects in each list and in all lists of a spec that has templates of pods, and returns how many there are.
func BoundObjects[T any](s *generic.Sizes, spec *T) int64 {
	s.Lists(field.NewPath("spec"), reflect.ValueOf(spec))
	n := generic.Objects(reflect.ValueOf(spec).Elem())
	s.Sum(field.NewPath("spec"), n, MaxObjects, "must have at most %d objects in all of its lists together, such as containers, variables "+
		"and volumes; it has %d")
	return n
}

// validateSet checks a set on its own, except for its name.
func validateSet(lws *leaderworkerset.LeaderWorkerSet) field.ErrorList {
	path, spec := field.NewPath("spec"), &lws.Spec
	errs := validateTemplates(&spec.LeaderWorkerTemplate, path.Child("leaderWorkerTemplate"))
	errs = append(errs, validateCounts(spec, path)...)
	errs = append(errs, validateRollout(spec, path)...)
	errs = append(errs, validateSubGroups(lws, path)...)
	errs = append(errs, enum(path.Child("startupPolicy"), spec.StartupPolicy, startupPolicies)...)
	errs = append(errs, validateNetwork(spec.NetworkConfig, path.Child("networkConfig"))...)
	errs = append(errs, validateRestarts(&spec.LeaderWorkerTemplate, path.Child("leaderWorkerTemplate"))...)
	return append(errs, validateAdditions(spec, path)...)
}

// validateTransition checks what may not change.
func validateTransition(next, prev *leaderworkerset.LeaderWorkerSetSpec) field.ErrorList {
	is, was := next.LeaderWorkerTemplate.SubGroupPolicy, prev.LeaderWorkerTemplate.SubGroupPolicy
	invalid := func(value any, detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(subGroupSizePath, value, detail)}
	}
	switch {
	case is == nil && was == nil:
		return nil
	case was == nil:
		return invalid(generic.ValueOf(is.SubGroupSize), "must not be set, because the set was created without a subGroupPolicy; "+
			"delete it and create another one")
	case is == nil:
		return invalid(field.OmitValueType{}, "must not be removed, because the set was created with a subGroupPolicy; delete it and create "+
			"another one")
	case was.SubGroupSize != nil && ptr.Deref(is.SubGroupSize, 0) != *was.SubGroupSize:
		return invalid(generic.ValueOf(is.SubGroupSize), "must not change: "+formerSize(*was.SubGroupSize))
	}
	return nil
}

// HasAnnotation returns whether an object has an annotation, with whatever value.
func HasAnnotation(m *metav1.ObjectMeta, key string) bool {
	_, found := m.Annotations[key]
	return found
}
