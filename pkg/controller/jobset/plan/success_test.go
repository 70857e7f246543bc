// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/policy"
)

func TestSuccessPolicyMet(t *testing.T) {
	policyOf := func(operator jobsetv1alpha2.Operator, targets ...string) *jobsetv1alpha2.SuccessPolicy {
		return &jobsetv1alpha2.SuccessPolicy{Operator: operator, TargetReplicatedJobs: targets}
	}
	all, anyOf := jobsetv1alpha2.OperatorAll, jobsetv1alpha2.OperatorAny
	for name, tc := range map[string]struct {
		policy *jobsetv1alpha2.SuccessPolicy
		jobs   []*batchv1.Job
		want   bool
	}{
		"All needs every Job":                                 {policyOf(all), []*batchv1.Job{jobNamed("a", 0, succeeded), jobNamed("w", 0, succeeded), jobNamed("w", 1, succeeded)}, true},
		"All is not met while a Job runs":                     {policyOf(all), []*batchv1.Job{jobNamed("a", 0, succeeded), jobNamed("w", 0, succeeded), jobNamed("w", 1)}, false},
		"All is not met while a Job is missing":               {policyOf(all), []*batchv1.Job{jobNamed("a", 0, succeeded), jobNamed("w", 0, succeeded)}, false},
		"All with targets needs their Jobs only":              {policyOf(all, "w"), []*batchv1.Job{jobNamed("a", 0), jobNamed("w", 0, succeeded), jobNamed("w", 1, succeeded)}, true},
		"All with targets is not met by other Jobs":           {policyOf(all, "w"), []*batchv1.Job{jobNamed("a", 0, succeeded), jobNamed("w", 0, succeeded)}, false},
		"a target named twice needs its Jobs once":            {policyOf(all, "a", "a"), []*batchv1.Job{jobNamed("a", 0, succeeded)}, true},
		"Any is met by one Job":                               {policyOf(anyOf), []*batchv1.Job{jobNamed("w", 1, succeeded)}, true},
		"Any with targets is not met by another Job":          {policyOf(anyOf, "w"), []*batchv1.Job{jobNamed("a", 0, succeeded)}, false},
		"Any with targets is met by one of their Jobs":        {policyOf(anyOf, "w"), []*batchv1.Job{jobNamed("w", 0, succeeded), jobNamed("w", 1)}, true},
		"nothing is met without Jobs":                         {policyOf(anyOf), nil, false},
		"All over targets without Jobs is met by any success": {policyOf(all, "none"), []*batchv1.Job{jobNamed("a", 0, succeeded)}, true},
		"a set without a policy needs every Job":              {nil, []*batchv1.Job{jobNamed("a", 0, succeeded), jobNamed("w", 0, succeeded), jobNamed("w", 1, succeeded)}, true},
		"a set without a policy does not end early":           {nil, []*batchv1.Job{jobNamed("a", 0, succeeded)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(with("a", 1), with("w", 2), with("none", 0))
			set.Spec.SuccessPolicy = tc.policy
			o := observe(set, tc.jobs...)
			diff(t, "met", tc.want, policy.Succeeded(set, classify(indexed(o)).succeeded))
		})
	}
}
