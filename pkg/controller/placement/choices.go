// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// Tiers are how good a domain is for the Jobs of a replicatedJob.
const (
	// tierRoom has room now.
	tierRoom int8 = iota
	// tierPreempting has room once other pods of lower priority have gone.
	tierPreempting
	// tierLower has Jobs of sets of lower priority, and room once those have gone.
	tierLower
	// tierShort is not taken, and lacks room, but is large enough.
	tierShort
	// tierLowerShort has Jobs of sets of lower priority, lacks room even without them, but is large enough.
	tierLowerShort
	// tierSmall and tierLowerSmall are the same for domains that are too small even if nothing else runs there and all nodes are ready.
	tierSmall
	tierLowerSmall
	tiers
	// tierTaken has Jobs that do not give way.
	tierTaken
)

const (
	// lastWithRoom is the last tier of domains in which pods find room, lastLarge that of domains in which they may find some one day.
	lastWithRoom = tierLower
	lastLarge    = tierLowerShort
)

// class is Jobs of a replicatedJob to which the same domains are open.
type class struct {
	*choices
	avoid []int32
	slots []int
}

// choices are the domains for the Jobs of a replicatedJob.
type choices struct {
	group *Group
	fit   *fit
	// tier is the tier of each domain, and sorted are the domains that are not taken, the best first.
	tier   []int8
	sorted []int32
}

// newChoices orders the domains: by tier, then by the room that they leave unused, or lack, so that large domains stay for large Jobs.
func newChoices(g *Group, f *fit, tier []int8) *choices {
	c := &choices{group: g, fit: f, tier: tier}
	for t, order := range [tiers][]int32{f.byFree, f.byPreempting, f.byPreempting, f.byMost, f.byMost, f.byMost, f.byMost} {
		for _, d := range order {
			if tier[d] == int8(t) {
				c.sorted = append(c.sorted, d)
			}
		}
	}
	return c
}

// emptied returns the same domains as if only the set itself had some.
func (c *choices) emptied(fixed []int32) *choices {
	tier := make([]int8, len(c.tier))
	for d := range tier {
		if c.fit.empty[d] < c.group.Pods {
			tier[d] = tierTaken
		}
	}
	for _, d := range fixed {
		tier[d] = tierTaken
	}
	return newChoices(c.group, c.fit, tier)
}

// count returns how many domains are of a tier or better.
func (c *choices) count(tier int8) int {
	n, _ := slices.BinarySearchFunc(c.sorted, tier+1, func(d int32, t int8) int { return cmp.Compare(c.tier[d], t) })
	return n
}

// open returns whether Jobs of the class may go to a domain if those of a tier or better are used. A domain to avoid is
// as good as one that lacks room.
func (c *class) open(domain int32, tier int8) bool {
	return c.tier[domain] <= tier && (tier > lastWithRoom || !slices.Contains(c.avoid, domain))
}
