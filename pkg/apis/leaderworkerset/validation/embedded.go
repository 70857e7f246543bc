// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// ValidateEmbedded checks a spec that another kind embeds, as the published schema does. Whatever else is wrong is
// found when the LeaderWorkerSet is created. The restart policy may be Default, because nothing has been filled in for
// the webhook.
func ValidateEmbedded(spec *leaderworkerset.LeaderWorkerSetSpec, path *field.Path) field.ErrorList {
	template, at := &spec.LeaderWorkerTemplate, path.Child("leaderWorkerTemplate")
	errs := ValidateReplicas(valueOr(spec.Replicas, 1), path.Child("replicas"))
	if template.RestartPolicy != leaderworkerset.RestartPolicyDefault {
		errs = append(errs, validateRestarts(template, at)...)
	}
	if policy := template.SubGroupPolicy; policy != nil {
		errs = append(errs, enum(at.Child("subGroupPolicy", "subGroupPolicyType"), valueOr(policy.Type, ""), subGroupTypes)...)
	}
	errs = append(errs, enum(path.Child("startupPolicy"), spec.StartupPolicy, startupPolicies)...)
	errs = append(errs, validateNetwork(spec.NetworkConfig, path.Child("networkConfig"))...)
	errs = append(errs, validateAdditions(spec, path)...)
	return append(errs, validateTemplates(template, at)...)
}
