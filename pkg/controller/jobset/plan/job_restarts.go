// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"

// countJobRestarts moves single Jobs to their next attempts. The arrays have one item per Job of the replicatedJob and come
// into being with the first restart that they count.
func (b *statusBuilder) countJobRestarts(v verdict) {
	counts := byName(b.next.ReplicatedJobsStatus)
	for _, job := range v.restarted {
		rj, _ := b.o.replicatedJob(replicatedJobOf(job))
		count, length, index := counts[rj.Name], helper.Replicas(rj), jobIndex(job)
		count.JobRestarts = withLength(count.JobRestarts, length)
		count.JobRestarts[index]++
		if counted(v.action) {
			count.JobRestartsCountTowardsMax = withLength(count.JobRestartsCountTowardsMax, length)
			count.JobRestartsCountTowardsMax[index]++
		}
	}
}

// withLength returns counters of the length.
func withLength(counters []int32, length int32) []int32 {
	if len(counters) == int(length) {
		return counters
	}
	next := make([]int32, length)
	copy(next, counters)
	return next
}
