// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// maxSearch bounds the search for another way to give each Job a domain, in domains that are looked at. What is not found within it
// counts as not there.
const maxSearch = 1_000_000

// slot is a Job that is being placed.
type slot struct {
	job   *Job
	at    int // among the Jobs of the request
	class int
	// domain is -1 as long as it has none.
	domain int32
}

// matching gives Jobs of one wave domains of one key, one each.
type matching struct {
	space   *space
	blocks  *blocks
	classes []*class
	slots   []slot
	// owner is the slot that has a domain, or -1.
	owner []int32
	// fixed are domains in which the set has Jobs that stay.
	fixed  []int32
	search int
	// better and last are used by best for one class after the other.
	better, last []int32
}

// place tries to give each Job a domain of a tier or better.
func (m *matching) place(tier int8) bool {
	m.owner = make([]int32, len(m.space.domains))
	for d := range m.owner {
		m.owner[d] = -1
	}
	for i := range m.slots {
		m.slots[i].domain = -1
	}
	for _, c := range m.classes {
		if c.count(tier) < len(c.slots) {
			return false
		}
	}
	m.assignPrevious(tier)
	m.choose(tier)
	for i := range m.slots {
		if m.slots[i].domain < 0 && !m.rearrange(i, tier) {
			return false
		}
	}
	return true
}

func (m *matching) assign(slot int, domain int32) {
	m.slots[slot].domain = domain
	m.owner[domain] = int32(slot)
}

// assignPrevious has Jobs go where they were before, unless nodes are missing there.
func (m *matching) assignPrevious(tier int8) {
	for i := range m.slots {
		s := &m.slots[i]
		c := m.classes[s.class]
		d, exists := m.space.at[s.job.Previous]
		if exists && m.owner[d] < 0 && c.open(d, tier) && !slices.Contains(c.avoid, d) && c.fit.suitable[d] >= s.job.PreviousNodes {
			m.assign(i, d)
		}
	}
}

// choose gives the Jobs without a domain the best domains that are left. Jobs with the fewest choices come first.
func (m *matching) choose(tier int8) {
	order := slices.Clone(m.classes)
	slices.SortStableFunc(order, func(a, b *class) int { return cmp.Compare(a.count(tier), b.count(tier)) })
	chooser := newChooser(m.blocks)
	for _, d := range m.fixed {
		chooser.use(d)
	}
	for i := range m.slots {
		if d := m.slots[i].domain; d >= 0 {
			chooser.use(d)
		}
	}
	for _, c := range order {
		need := 0
		for _, s := range c.slots {
			if m.slots[s].domain < 0 {
				need++
			}
		}
		if need > 0 {
			m.give(c, m.best(c, chooser, need, tier))
		}
		for _, s := range c.slots {
			if d := m.slots[s].domain; d >= 0 {
				chooser.use(d)
			}
		}
	}
}

// best returns the domains for Jobs of a class, until its next call: all of the better tiers, if they do not suffice, and some of the last.
func (m *matching) best(c *class, chooser *chooser, need int, tier int8) []int32 {
	better, last := m.better[:0], m.last[:0]
	for _, d := range c.sorted[:c.count(tier)] {
		switch {
		case m.owner[d] >= 0 || !c.open(d, tier):
		case c.tier[d] < tier:
			better = append(better, d)
		default:
			last = append(last, d)
		}
	}
	m.better, m.last = better, last
	if len(better) >= need {
		return chooser.choose(better, need, 0)
	}
	for _, d := range better {
		chooser.use(d)
	}
	return append(better, chooser.choose(last, need-len(better), 0)...)
}

// give gives domains to the Jobs of a class by index, so that Jobs of near indices are in the same block.
func (m *matching) give(c *class, domains []int32) {
	pool := newPool(m.blocks, domains)
	block := int32(-1)
	for _, s := range c.slots {
		if m.slots[s].domain < 0 {
			d, left := pool.pick(block)
			if !left {
				return
			}
			m.assign(s, d)
		}
		block = m.blocks.innermost(m.slots[s].domain)
	}
}

// pool is domains that are given away, in the order of their blocks.
type pool struct {
	blocks  *blocks
	domains []int32
	taken   []bool
	// next is the first domain that may be left, and in the first one of each block.
	next int
	in   map[int32]int
}

func newPool(b *blocks, domains []int32) *pool {
	p := &pool{blocks: b, domains: domains, taken: make([]bool, len(domains)), in: map[int32]int{}}
	slices.SortFunc(domains, func(x, y int32) int {
		return cmp.Or(cmp.Compare(b.innermost(x), b.innermost(y)), cmp.Compare(x, y))
	})
	for i := len(domains) - 1; i >= 0; i-- {
		p.in[b.innermost(domains[i])] = i
	}
	return p
}

// pick returns a domain of a block if there is one left, or else the first one that is.
func (p *pool) pick(block int32) (domain int32, left bool) {
	at, known := p.in[block]
	if at = p.skip(at); !known || at == len(p.domains) || p.blocks.innermost(p.domains[at]) != block {
		p.next = p.skip(p.next)
		at = p.next
	}
	if at == len(p.domains) {
		return 0, false
	}
	p.taken[at] = true
	p.in[p.blocks.innermost(p.domains[at])] = at + 1
	return p.domains[at], true
}

func (p *pool) skip(at int) int {
	for at < len(p.domains) && p.taken[at] {
		at++
	}
	return at
}

// step is how a class comes to be asked for a domain: another class would take that one from it.
type step struct {
	class  int
	domain int32
}

// rearrange finds a domain for a Job by having others of the set go to other domains.
func (m *matching) rearrange(wanting int, tier int8) bool {
	start := m.slots[wanting].class
	from := make([]step, len(m.classes))
	seen := make([]bool, len(m.classes))
	seen[start] = true
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		c := m.classes[queue[0]]
		for _, d := range c.sorted[:c.count(tier)] {
			if m.search--; m.search < 0 {
				return false
			}
			if !c.open(d, tier) {
				continue
			}
			owner := m.owner[d]
			if owner < 0 {
				m.shift(wanting, from, queue[0], d)
				return true
			}
			if y := m.slots[owner].class; !seen[y] {
				seen[y], from[y] = true, step{queue[0], d}
				queue = append(queue, y)
			}
		}
	}
	return false
}

// shift gives a free domain to the last class, whose Job leaves its own to the class before, and so on to the Job that wants one.
func (m *matching) shift(wanting int, from []step, last int, domain int32) {
	for last != m.slots[wanting].class {
		s := m.owner[from[last].domain]
		m.assign(int(s), domain)
		last, domain = from[last].class, from[last].domain
	}
	m.assign(wanting, domain)
}
