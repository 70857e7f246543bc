// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// Bounds of numbers.
const (
	MaxReplicas         = 1_000_000
	maxRevisionHistory  = 100
	maxFirstDelay       = 3600
	maxRestartDelay     = 86400
	defaultLongestDelay = 300
)

var (
	// restartPolicies leaves out Default, in whose place None is stored.
	restartPolicies = []leaderworkerset.RestartPolicyType{
		leaderworkerset.RestartPolicyRecreateGroupOnPodRestart, leaderworkerset.RestartPolicyRecreateGroupAfterStart,
		leaderworkerset.RestartPolicyNone,
	}
	startupPolicies = []leaderworkerset.StartupPolicyType{leaderworkerset.StartupPolicyLeaderCreated,
		leaderworkerset.StartupPolicyLeaderReady}
	rolloutTypes  = []leaderworkerset.RolloutStrategyType{leaderworkerset.RolloutStrategyRollingUpdate}
	subGroupTypes = []leaderworkerset.SubGroupPolicyType{leaderworkerset.SubGroupPolicyLeaderWorker,
		leaderworkerset.SubGroupPolicyLeaderExcluded}
	subdomainPolicies = []leaderworkerset.SubdomainPolicy{leaderworkerset.SubdomainShared, leaderworkerset.SubdomainUniquePerReplica}
)

// validateTemplates checks the schema of the templates: keys that must be present, and items that must be unique.
func validateTemplates(template *leaderworkerset.LeaderWorkerTemplate, path *field.Path) field.ErrorList {
	errs := podtemplate.ValidatePodTemplate(&template.WorkerTemplate, path.Child("workerTemplate"))
	if template.LeaderTemplate != nil {
		errs = append(errs, podtemplate.ValidatePodTemplate(template.LeaderTemplate, path.Child("leaderTemplate"))...)
	}
	claims := path.Child("volumeClaimTemplates")
	for i := range template.VolumeClaimTemplates {
		errs = append(errs, podtemplate.ValidateClaimSpec(&template.VolumeClaimTemplates[i].Spec, claims.Index(i).Child("spec"))...)
	}
	return errs
}

// ValidateReplicas checks the number of groups.
func ValidateReplicas(replicas int32, path *field.Path) field.ErrorList {
	if replicas >= 0 && replicas <= MaxReplicas {
		return nil
	}
	return field.ErrorList{field.Invalid(path, replicas, fmt.Sprintf("must be from 0 to %d", MaxReplicas))}
}

// validateCounts checks the number of groups and of their pods.
func validateCounts(spec *leaderworkerset.LeaderWorkerSetSpec, path *field.Path) field.ErrorList {
	replicas, size := ptr.Deref(spec.Replicas, 1), ptr.Deref(spec.LeaderWorkerTemplate.GroupSize, 1)
	errs := ValidateReplicas(replicas, path.Child("replicas"))
	if size < 1 {
		errs = append(errs, field.Invalid(path.Child("leaderWorkerTemplate", "size"), size, "must be 1 or more: the leader counts"))
	}
	if pods := int64(replicas) * int64(size); pods > math.MaxInt32 {
		errs = append(errs, field.Invalid(path.Child("replicas"), replicas, fmt.Sprintf(
			"must not result in more than %d pods: replicas times leaderWorkerTemplate.size is %d", math.MaxInt32, pods)))
	}
	return errs
}

// validateNetwork checks how pods find each other. An absent section is Shared.
func validateNetwork(network *leaderworkerset.NetworkConfig, path *field.Path) field.ErrorList {
	if network == nil {
		return nil
	}
	return enum(path.Child("subdomainPolicy"), ptr.Deref(network.SubdomainPolicy, ""), subdomainPolicies)
}

// validateRestarts checks the restart policy, and the limit that depends on it.
func validateRestarts(template *leaderworkerset.LeaderWorkerTemplate, path *field.Path) field.ErrorList {
	errs := enum(path.Child("restartPolicy"), template.RestartPolicy, restartPolicies)
	limit, p := template.MaxGroupRestarts, path.Child("maxGroupRestarts")
	switch {
	case limit == nil:
	case *limit < 0:
		errs = append(errs, field.Invalid(p, *limit, "must be 0 or more; leave it out for no limit"))
	case template.RestartPolicy == leaderworkerset.RestartPolicyNone:
		errs = append(errs, field.Forbidden(p, "must be left out, because restartPolicy is None: groups are not recreated"))
	}
	return errs
}

// validateAdditions checks fields that upstream does not have.
func validateAdditions(spec *leaderworkerset.LeaderWorkerSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := ptr.Deref(spec.RevisionHistoryLimit, 0); n < 0 || n > maxRevisionHistory {
		errs = append(errs, field.Invalid(path.Child("revisionHistoryLimit"), n, fmt.Sprintf("must be from 0 to %d", maxRevisionHistory)))
	}
	backoff := spec.GroupRestartBackoff
	if backoff == nil {
		return errs
	}
	p := path.Child("groupRestartBackoff")
	base := ptr.Deref(backoff.BaseSeconds, 1)
	if base < 1 || base > maxFirstDelay {
		return append(errs, field.Invalid(p.Child("baseSeconds"), base, fmt.Sprintf("must be from 1 to %d", maxFirstDelay)))
	}
	if longest := ptr.Deref(backoff.MaxSeconds, max(base, defaultLongestDelay)); longest < base || longest > maxRestartDelay {
		errs = append(errs, field.Invalid(p.Child("maxSeconds"), longest, fmt.Sprintf("must be from %d, the value of baseSeconds, to %d", base,
			maxRestartDelay)))
	}
	return errs
}

// enum checks a value that must be one of a few.
func enum[T ~string](path *field.Path, value T, supported []T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

// ValidateEmbedded checks a spec that another kind embeds, as the published schema does. Whatever else is wrong is
// found when the LeaderWorkerSet is created. The restart policy may be Default, because nothing has been filled in for
// the webhook.
func ValidateEmbedded(spec *leaderworkerset.LeaderWorkerSetSpec, path *field.Path) field.ErrorList {
	template, at := &spec.LeaderWorkerTemplate, path.Child("leaderWorkerTemplate")
	errs := ValidateReplicas(ptr.Deref(spec.Replicas, 1), path.Child("replicas"))
	if template.RestartPolicy != leaderworkerset.RestartPolicyDefault {
		errs = append(errs, validateRestarts(template, at)...)
	}
	if policy := template.SubGroupPolicy; policy != nil {
		errs = append(errs, enum(at.Child("subGroupPolicy", "subGroupPolicyType"), ptr.Deref(policy.Type, ""), subGroupTypes)...)
	}
	errs = append(errs, enum(path.Child("startupPolicy"), spec.StartupPolicy, startupPolicies)...)
	errs = append(errs, validateNetwork(spec.NetworkConfig, path.Child("networkConfig"))...)
	errs = append(errs, validateAdditions(spec, path)...)
	return append(errs, validateTemplates(template, at)...)
}
