// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"math"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// Bounds of the lists of a JobSet, and of what they lead to.
const (
	MaxReplicatedJobs       = 1000
	MaxDependencies         = 5
	MaxTargets              = 1000
	MaxRules                = 1000
	MaxReasons              = 100
	MaxPatterns             = 64 // of all rules together
	MaxVolumeClaimPolicies  = 50
	MaxVolumeClaimTemplates = 50 // of each policy
	MaxObjects              = 20_000
	MaxJobs                 = 100_000
	MaxPods                 = 2_000_000
)

// specSizes measures a spec. It is cheap whatever the spec holds, so that it comes before every other check.
func specSizes(spec *jobset.JobSetSpec) *generic.Sizes {
	s, path := &generic.Sizes{}, field.NewPath("spec")
	replicatedJobsSizes(s, spec, path.Child("replicatedJobs"))
	if policy := spec.SuccessPolicy; policy != nil {
		s.List(path.Child("successPolicy", "targetReplicatedJobs"), len(policy.TargetReplicatedJobs), MaxTargets)
	}
	if policy := spec.FailurePolicy; policy != nil {
		rulesSizes(s, policy.Rules, path.Child("failurePolicy", "rules"))
	}
	policies := path.Child("volumeClaimPolicies")
	if s.List(policies, len(spec.VolumeClaimPolicies), MaxVolumeClaimPolicies) {
		for i := range spec.VolumeClaimPolicies {
			s.List(policies.Index(i).Child("templates"), len(spec.VolumeClaimPolicies[i].Templates), MaxVolumeClaimTemplates)
		}
	}
	if spec.Scheduling != nil {
		schedulingSizes(s, spec.Scheduling, path.Child("scheduling"))
	}
	s.Lists(path, reflect.ValueOf(spec))
	s.Sum(path, generic.Objects(reflect.ValueOf(spec).Elem()), MaxObjects,
		"must have at most %d objects in all of its lists together, such as containers, variables and volumes; it has %d")
	return s
}

func replicatedJobsSizes(s *generic.Sizes, spec *jobset.JobSetSpec, path *field.Path) {
	if !s.List(path, len(spec.ReplicatedJobs), MaxReplicatedJobs) {
		return
	}
	for i := range spec.ReplicatedJobs {
		s.List(path.Index(i).Child("dependsOn"), len(spec.ReplicatedJobs[i].DependsOn), MaxDependencies)
	}
	jobs, pods := totals(spec)
	s.Sum(path, jobs, MaxJobs, "must not result in more than %d Jobs: the replicas of all replicatedJobs add up to %d")
	s.Sum(path, pods, MaxPods, "must not result in more than %d pods: replicas times parallelism of all replicatedJobs add up to %d")
}

func rulesSizes(s *generic.Sizes, rules []jobset.FailurePolicyRule, path *field.Path) {
	if !s.List(path, len(rules), MaxRules) {
		return
	}
	patterns := 0
	for i := range rules {
		patterns += len(rules[i].OnJobFailureMessagePatterns)
		s.List(path.Index(i).Child("targetReplicatedJobs"), len(rules[i].TargetReplicatedJobs), MaxTargets)
		s.List(path.Index(i).Child("onJobFailureReasons"), len(rules[i].OnJobFailureReasons), MaxReasons)
	}
	s.Sum(path, int64(patterns), MaxPatterns, "must have at most %d onJobFailureMessagePatterns in all rules together; it has %d")
}

// totals counts the Jobs and the pods of a set. What validateReplicas refuses by itself is left out.
func totals(spec *jobset.JobSetSpec) (jobs, pods int64) {
	for i := range spec.ReplicatedJobs {
		rj := &spec.ReplicatedJobs[i]
		count, parallelism := int64(replicas(rj)), int64(ptr.Deref(rj.Template.Spec.Parallelism, 1))
		if count < 0 || count*parallelism > math.MaxInt32 {
			continue
		}
		jobs += count
		pods += count * max(parallelism, 0)
	}
	return jobs, pods
}

// statusSizes measures a status. There are as many entries of replicatedJobsStatus as replicatedJobs, also of a set that is
// older than their bound.
func statusSizes(js *jobset.JobSet) *generic.Sizes {
	s, path := &generic.Sizes{}, field.NewPath("status")
	status := &js.Status
	s.List(path.Child("conditions"), len(status.Conditions), generic.MaxConditions)
	statuses := path.Child("replicatedJobsStatus")
	if s.List(statuses, len(status.ReplicatedJobsStatus), max(MaxReplicatedJobs, len(js.Spec.ReplicatedJobs))) {
		for i := range status.ReplicatedJobsStatus {
			p := statuses.Index(i)
			s.List(p.Child("jobRestarts"), len(status.ReplicatedJobsStatus[i].JobRestarts), jobset.MaxCountedJobs)
			s.List(p.Child("jobRestartsCountTowardsMax"), len(status.ReplicatedJobsStatus[i].JobRestartsCountTowardsMax), jobset.MaxCountedJobs)
		}
	}
	if attempts := path.Child("attempts"); s.List(attempts, len(status.Attempts), jobset.MaxAttempts) {
		for i := range status.Attempts {
			s.List(attempts.Index(i).Child("avoidedNodes"), len(status.Attempts[i].AvoidedNodes), jobset.MaxAvoidedNodes)
		}
	}
	return s
}
