// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	lwsvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

var modes = []disaggregatedset.RoleScalingMode{disaggregatedset.RoleScalingStatic, disaggregatedset.RoleScalingExternal}

func validateRole(ds *disaggregatedset.DisaggregatedSet, role *disaggregatedset.DisaggregatedRoleSpec, path *field.Path) field.ErrorList {
	errs := validateName(ds, role, path.Child("name"))
	if role.Scaling != nil && !slices.Contains(modes, role.Scaling.Mode) {
		errs = append(errs, field.NotSupported(path.Child("scaling", "mode"), role.Scaling.Mode, modes))
	}
	metadata := path.Child("metadata")
	errs = append(errs, metav1validation.ValidateLabels(role.Labels, metadata.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(role.Annotations, metadata.Child("annotations"))...)
	errs = append(errs, lwsvalidation.ValidateEmbedded(&role.Spec, path.Child("spec"))...)
	errs = append(errs, validateRollout(&role.Spec, path.Child("spec", "rolloutStrategy"))...)
	return append(errs, validateExclusive(ds, role, path)...)
}

// validateRollout checks how a role is rolled. A partition would keep groups of a former revision.
func validateRollout(spec *leaderworkerset.LeaderWorkerSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t := spec.RolloutStrategy.Type; t != "" && t != leaderworkerset.RolloutStrategyRollingUpdate {
		errs = append(errs, field.NotSupported(path.Child("type"), t,
			[]leaderworkerset.RolloutStrategyType{leaderworkerset.RolloutStrategyRollingUpdate}))
	}
	config := spec.RolloutStrategy.RollingUpdateConfiguration
	if config == nil {
		return errs
	}
	path = path.Child("rollingUpdateConfiguration")
	if n := ptr.Deref(config.Partition, 0); n != 0 {
		errs = append(errs, field.Forbidden(path.Child("partition"), "must be 0 in a role: all roles of a DisaggregatedSet are rolled together"))
	}
	replicas := ptr.Deref(spec.Replicas, 1)
	if replicas <= 0 {
		return errs
	}
	limits := validateLimit(config.MaxUnavailable, path.Child("maxUnavailable"))
	limits = append(limits, validateLimit(config.MaxSurge, path.Child("maxSurge"))...)
	if len(limits) == 0 && resolves(config.MaxUnavailable, replicas, false) == 0 && resolves(config.MaxSurge, replicas, true) == 0 {
		limits = append(limits, field.Invalid(path.Child("maxUnavailable"), text(config.MaxUnavailable),
			fmt.Sprintf("must be more than 0 groups if maxSurge is 0: of %d replicas both are 0, so that no group could ever be replaced",
				replicas)))
	}
	return append(errs, limits...)
}

func validateLimit(limit *intstr.IntOrString, path *field.Path) field.ErrorList {
	switch {
	case limit == nil:
	case limit.Type == intstr.Int && limit.IntVal < 0:
		return field.ErrorList{field.Invalid(path, limit.IntVal, "must be 0 or more")}
	case limit.Type == intstr.String:
		digits, percent := strings.CutSuffix(limit.StrVal, "%")
		if n, err := strconv.Atoi(digits); !percent || err != nil || n < 0 || n > 100 || digits[0] == '+' {
			return field.ErrorList{field.Invalid(path, limit.StrVal, "must be a number, or a percentage from 0% to 100%")}
		}
	}
	return nil
}

// resolves returns how many groups a limit is; that of an absent one is 0.
func resolves(limit *intstr.IntOrString, replicas int32, up bool) int {
	if limit == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(limit, int(replicas), up)
	if err != nil {
		return 0
	}
	return n
}

func text(limit *intstr.IntOrString) string {
	if limit == nil {
		return ""
	}
	return limit.String()
}

// validateExclusive refuses two answers to the question which pods share a domain.
func validateExclusive(ds *disaggregatedset.DisaggregatedSet, role *disaggregatedset.DisaggregatedRoleSpec,
	path *field.Path) field.ErrorList {
	policy := ds.Spec.PlacementPolicy
	if policy == nil || policy.Type == disaggregatedset.PlacementNone || policy.Type == "" {
		return nil
	}
	template := &role.Spec.LeaderWorkerTemplate
	where := []*metav1.ObjectMeta{&role.ObjectMeta, &template.WorkerTemplate.ObjectMeta}
	if template.LeaderTemplate != nil {
		where = append(where, &template.LeaderTemplate.ObjectMeta)
	}
	for _, key := range []string{leaderworkerset.ExclusiveKey, leaderworkerset.SubGroupExclusiveKey} {
		for _, meta := range where {
			if _, found := meta.Annotations[key]; found {
				return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
					"must not have the annotation %s together with spec.placementPolicy: remove one of the two", key))}
			}
		}
	}
	return nil
}
