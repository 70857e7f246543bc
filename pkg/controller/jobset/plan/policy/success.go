// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Succeeded reports whether enough of the targeted Jobs have succeeded (docs/reference/jobset.md#success-policy). A set without a
// policy, which only a set stored by other means than our API can be, needs all of its Jobs.
func Succeeded(js *jobsetv1alpha2.JobSet, succeeded []*batchv1.Job) bool {
	if len(succeeded) == 0 {
		return false
	}
	policy := jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}
	if js.Spec.SuccessPolicy != nil {
		policy = *js.Spec.SuccessPolicy
	}
	targets := sets.New(policy.TargetReplicatedJobs...)
	targeted := func(name string) bool { return len(targets) == 0 || targets.Has(name) }
	var have, all int64
	for _, job := range succeeded {
		if targeted(job.Labels[jobsetv1alpha2.ReplicatedJobNameKey]) {
			have++
		}
	}
	for i := range js.Spec.ReplicatedJobs {
		if rj := &js.Spec.ReplicatedJobs[i]; targeted(rj.Name) {
			all += int64(helper.Replicas(rj))
		}
	}
	if policy.Operator == jobsetv1alpha2.OperatorAny {
		return have >= 1
	}
	return have >= all
}
