// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// maxLevels is how many levels of a set count.
const maxLevels = 4

// blocks are the values of the levels that domains lie in. A block is numbered within its level, in the order of the
// values of it and the blocks around it.
type blocks struct {
	// of is the block of each domain, for each level, the outermost first. It is empty without levels.
	of [][]int32
}

// newBlocks returns the blocks of a space. A domain lies where its first node that has the label does.
func newBlocks(s *space, nodes []*Node, levels []Name) *blocks {
	b := &blocks{}
	paths := make([][]Name, len(s.domains))
	order := make([]int32, len(s.domains))
	for d := range order {
		order[d] = int32(d)
	}
	for _, key := range levels[:min(len(levels), maxLevels)] {
		if key == s.topology {
			break
		}
		for d := range paths {
			paths[d] = append(paths[d], valueOf(s.nodesOf[d], nodes, key))
		}
		slices.SortStableFunc(order, func(i, j int32) int { return slices.CompareFunc(paths[i], paths[j], compareNames) })
		level := make([]int32, len(s.domains))
		for i := 1; i < len(order); i++ {
			level[order[i]] = level[order[i-1]]
			if !slices.Equal(paths[order[i]], paths[order[i-1]]) {
				level[order[i]]++
			}
		}
		b.of = append(b.of, level)
	}
	return b
}

func valueOf(domain []int32, nodes []*Node, key Name) Name {
	for _, i := range domain {
		if value, _ := nodes[i].label(key); value != (Name{}) {
			return value
		}
	}
	return Name{}
}

// innermost returns the block of a domain at the innermost level.
func (b *blocks) innermost(domain int32) int32 {
	if len(b.of) == 0 {
		return 0
	}
	return b.of[len(b.of)-1][domain]
}

// chooser chooses domains in few blocks.
type chooser struct {
	*blocks
	// used are the blocks, by level, in which the set has Jobs already.
	used []map[int32]bool
}

func newChooser(b *blocks) *chooser {
	c := &chooser{blocks: b}
	for range b.of {
		c.used = append(c.used, map[int32]bool{})
	}
	return c
}

func (c *chooser) use(domain int32) {
	for level, of := range c.of {
		c.used[level][of[domain]] = true
	}
}

// choose returns as many of the domains as are needed, which come in the order of preference: those in blocks that the
// set uses already, and then those in as few other blocks as possible.
func (c *chooser) choose(domains []int32, need, level int) []int32 {
	if need >= len(domains) {
		return domains
	}
	if level == len(c.of) {
		return domains[:need]
	}
	var used, others [][]int32
	for _, block := range c.split(domains, level) {
		if c.used[level][c.of[level][block[0]]] {
			used = append(used, block)
		} else {
			others = append(others, block)
		}
	}
	out := c.fill(used, need, level)
	return append(out, c.fill(others, need-len(out), level)...)
}

// split divides domains by their block, in the order of the blocks. Within each, they stay in the order of preference. It counts
// instead of comparing, because a Job that avoids domains of its own looks at all that are left.
func (c *chooser) split(domains []int32, level int) [][]int32 {
	first, sizes := c.sizes(domains, level)
	out, left := make([][]int32, len(sizes)), make([]int32, len(domains))
	for i, n := range sizes {
		out[i], left = left[:0:n], left[n:]
	}
	for _, d := range domains {
		block := &out[c.of[level][d]-first]
		*block = append(*block, d)
	}
	return slices.DeleteFunc(out, func(block []int32) bool { return len(block) == 0 })
}

// sizes returns how many of the domains are in each block, from the first one that has some to the last. Blocks of a level that are in one
// block of the level around it have numbers in a row, so that there are not many more of them than counted ones.
func (c *chooser) sizes(domains []int32, level int) (int32, []int32) {
	of := c.of[level]
	first, last := of[domains[0]], of[domains[0]]
	for _, d := range domains {
		first, last = min(first, of[d]), max(last, of[d])
	}
	sizes := make([]int32, last-first+1)
	for _, d := range domains {
		sizes[of[d]-first]++
	}
	return first, sizes
}

// fill takes domains from blocks: from the best one that has enough for all that is needed, or else all of the largest block, and so on.
func (c *chooser) fill(from [][]int32, need, level int) (out []int32) {
	slices.SortStableFunc(from, func(a, b []int32) int { return cmp.Compare(len(b), len(a)) })
	for len(from) > 0 && need > 0 {
		if best := c.bestFit(from, need, level); best >= 0 {
			return append(out, c.choose(from[best], need, level+1)...)
		}
		out = append(out, from[0]...)
		need -= len(from[0])
		from = from[1:]
	}
	return out
}

// bestFit returns which block has enough domains, in the fewest blocks of the next level and with the fewest left over,
// or -1. The blocks come by falling size.
func (c *chooser) bestFit(from [][]int32, need, level int) int {
	best, bestInner := -1, 0
	for i, block := range from {
		if len(block) < need {
			break
		}
		inner := c.innerBlocks(block, need, level+1)
		if best < 0 || inner < bestInner || inner == bestInner && len(block) < len(from[best]) {
			best, bestInner = i, inner
		}
	}
	return best
}

// innerBlocks returns in how many blocks of a level so many domains are.
func (c *chooser) innerBlocks(domains []int32, need, level int) int {
	if level >= len(c.of) {
		return 0
	}
	_, sizes := c.sizes(domains, level)
	slices.Sort(sizes)
	n := 0
	for need > 0 && len(sizes) > 0 {
		need -= int(sizes[len(sizes)-1])
		sizes = sizes[:len(sizes)-1]
		n++
	}
	return n
}
