// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// subGroupSizePath is the path of upstream, with a capital letter, which clients match.
var subGroupSizePath = field.NewPath("spec", "leaderWorkerTemplate", "SubGroupPolicy", "subGroupSize")

// validateSubGroups checks the policy of subgroups, and the annotation that needs it.
func validateSubGroups(lws *leaderworkerset.LeaderWorkerSet, path *field.Path) field.ErrorList {
	template := &lws.Spec.LeaderWorkerTemplate
	policy := template.SubGroupPolicy
	if policy == nil {
		if HasAnnotation(&lws.ObjectMeta, leaderworkerset.SubGroupExclusiveKey) {
			return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations", leaderworkerset.SubGroupExclusiveKey),
				lws.Annotations[leaderworkerset.SubGroupExclusiveKey],
				"must not be set without spec.leaderWorkerTemplate.subGroupPolicy")}
		}
		return nil
	}
	kind := ptr.Deref(policy.Type, leaderworkerset.SubGroupPolicyLeaderWorker)
	errs := enum(path.Child("leaderWorkerTemplate", "subGroupPolicy", "subGroupPolicyType"), kind, subGroupTypes)
	if policy.SubGroupSize == nil {
		return append(errs, field.Required(subGroupSizePath, "must be the number of pods of a subgroup"))
	}
	return append(errs, validateSubGroupSize(*policy.SubGroupSize, ptr.Deref(template.GroupSize, 1), kind)...)
}

func validateSubGroupSize(subSize, size int32, kind leaderworkerset.SubGroupPolicyType) field.ErrorList {
	var errs field.ErrorList
	invalid := func(format string, args ...any) {
		errs = append(errs, field.Invalid(subGroupSizePath, subSize, fmt.Sprintf(format, args...)))
	}
	if subSize < 1 {
		invalid("must be 1 or more")
		return errs
	}
	if size < 1 {
		return nil // reported for size
	}
	whole, withoutLeader := size%subSize == 0, (size-1)%subSize == 0
	if !whole && !withoutLeader {
		invalid("must divide size, %d, or size less 1", size)
	}
	if subSize > size {
		invalid("must not be greater than size, %d", size)
	}
	if whole && !withoutLeader && kind == leaderworkerset.SubGroupPolicyLeaderExcluded {
		invalid("must divide size less 1, %d, because subGroupPolicyType is LeaderExcluded", size-1)
	}
	return errs
}

func formerSize(size int32) string {
	return fmt.Sprintf("it was %d; delete the set and create another one to change it", size)
}
