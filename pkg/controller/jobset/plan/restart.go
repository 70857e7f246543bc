// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// countJobRestart moves one Job to its next attempt. The arrays have one item per Job of the replicatedJob and come into
// being with the first restart that they count.
func (b *statusBuilder) countJobRestart(v verdict) {
	name, index := replicatedJobOf(v.job), jobIndex(v.job)
	length := replicas(replicatedJobNamed(b.o.JobSet, name))
	for i := range b.next.ReplicatedJobsStatus {
		if count := &b.next.ReplicatedJobsStatus[i]; count.Name == name {
			count.JobRestarts = incremented(count.JobRestarts, length, index)
			if counted(v.action) {
				count.JobRestartsCountTowardsMax = incremented(count.JobRestartsCountTowardsMax, length, index)
			}
		}
	}
}

// incremented returns counters of the length, with one of them moved on.
func incremented(counters []int32, length, index int32) []int32 {
	next := make([]int32, length)
	copy(next, counters)
	next[index]++
	return next
}
