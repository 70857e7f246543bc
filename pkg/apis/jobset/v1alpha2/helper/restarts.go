// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// RestartLimit returns the number of counted restarts that a set may have: maxRestarts of its failure policy, and the
// restarts that retries added. It is 0 without a failure policy.
func RestartLimit(js *jobsetv1alpha2.JobSet) int64 {
	if js.Spec.FailurePolicy == nil {
		return 0
	}
	return int64(js.Spec.FailurePolicy.MaxRestarts) + int64(js.Status.AddedRestarts)
}

// CountedRestarts returns the number of restarts so far, of the set and of single Jobs, that count towards the limit.
func CountedRestarts(status *jobsetv1alpha2.JobSetStatus) int64 {
	n := int64(status.RestartsCountTowardsMax)
	for i := range status.ReplicatedJobsStatus {
		for _, restarts := range status.ReplicatedJobsStatus[i].JobRestartsCountTowardsMax {
			n += int64(restarts)
		}
	}
	return n
}
