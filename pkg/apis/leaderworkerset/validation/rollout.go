// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

var percentage = regexp.MustCompile(`^[0-9]+%$`)

// validateRollout checks the rollout strategy.
func validateRollout(spec *leaderworkerset.LeaderWorkerSetSpec, path *field.Path) field.ErrorList {
	strategy, p := &spec.RolloutStrategy, path.Child("rolloutStrategy")
	errs := enum(p.Child("type"), strategy.Type, rolloutTypes)
	rolling := strategy.RollingUpdateConfiguration
	if rolling == nil {
		return errs
	}
	p = p.Child("rollingUpdateConfiguration")
	if n := ptr.Deref(rolling.Partition, 0); n < 0 {
		errs = append(errs, field.Invalid(p.Child("partition"), n, "must be 0 or more"))
	}
	unavailable, surge := p.Child("maxUnavailable"), p.Child("maxSurge")
	wrong := append(validateAmount(rolling.MaxUnavailable, unavailable), validateAmount(rolling.MaxSurge, surge)...)
	if len(wrong) > 0 {
		return append(errs, wrong...)
	}
	replicas := ptr.Deref(spec.Replicas, 1)
	if replicas > 0 && scaled(rolling.MaxUnavailable, 1, replicas, false) == 0 && scaled(rolling.MaxSurge, 0, replicas, true) == 0 {
		errs = append(errs, field.Invalid(unavailable, generic.ValueOf(rolling.MaxUnavailable), fmt.Sprintf(
			"must not be 0, rounded down, if maxSurge is 0: no group could be replaced; replicas is %d", replicas)))
	}
	return errs
}

// validateAmount checks a number of groups, or a percentage of them.
func validateAmount(amount *intstr.IntOrString, path *field.Path) field.ErrorList {
	switch {
	case amount == nil:
		return nil
	case amount.Type == intstr.Int:
		if amount.IntVal < 0 {
			return field.ErrorList{field.Invalid(path, amount.IntVal, "must be 0 or more")}
		}
		return nil
	case !percentage.MatchString(amount.StrVal):
		return field.ErrorList{field.Invalid(path, amount.StrVal, "must be a number, or a percentage such as 10%")}
	}
	if percent, err := strconv.Atoi(strings.TrimSuffix(amount.StrVal, "%")); err != nil || percent > 100 {
		return field.ErrorList{field.Invalid(path, amount.StrVal, "must be at most 100%")}
	}
	return nil
}

// scaled is the number of groups of a valid amount.
func scaled(amount *intstr.IntOrString, absent, replicas int32, roundUp bool) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(amount, intstr.FromInt32(absent)), int(replicas), roundUp)
	if err != nil {
		return 0
	}
	return n
}
