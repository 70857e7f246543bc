// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import "math/bits"

// maxOrderedGroups is up to how many replicatedJobs their order is looked at. Jobs of a set with more never share a domain.
const maxOrderedGroups = 1024

// wavesOf divides the replicatedJobs of a set into waves: all Jobs of a wave are complete before any of the next starts. Jobs of
// different waves may have the same domain, one after the other. It returns the wave of each replicatedJob.
func wavesOf(groups []Group) []int {
	waves := make([]int, len(groups))
	if len(groups) > maxOrderedGroups {
		return waves
	}
	before := completedBefore(groups)
	// common is how many of the first replicatedJobs are complete before each one from here on.
	common := make([]int, len(groups)+1)
	common[len(groups)] = len(groups)
	for i := len(groups) - 1; i >= 0; i-- {
		common[i] = min(common[i+1], before[i].prefix())
	}
	for i := 1; i < len(groups); i++ {
		waves[i] = waves[i-1]
		if common[i] >= i {
			waves[i]++
		}
	}
	return waves
}

// groupBits is a set of replicatedJobs.
type groupBits []uint64

func (b groupBits) set(i int) { b[i/64] |= 1 << (i % 64) }

// completedBefore returns, for each replicatedJob, the replicatedJobs that have completed before it starts: its own
// Complete dependencies, and the replicatedJobs that have completed before any of its dependencies starts.
func completedBefore(groups []Group) []groupBits {
	out := make([]groupBits, len(groups))
	for i := range groups {
		out[i] = make(groupBits, (len(groups)+63)/64)
		for _, d := range groups[i].DependsOn {
			if d.Group < 0 || d.Group >= i {
				continue
			}
			for w, word := range out[d.Group] {
				out[i][w] |= word
			}
			if d.Complete {
				out[i].set(d.Group)
			}
		}
	}
	return out
}

// prefix returns how many of the first replicatedJobs are all in the set.
func (b groupBits) prefix() int {
	n := 0
	for _, word := range b {
		ones := bits.TrailingZeros64(^word)
		n += ones
		if ones < 64 {
			break
		}
	}
	return n
}
