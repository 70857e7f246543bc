// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
	"strconv"
)

// Place decides where the Jobs of all requests go, and returns the results in the order of the requests. Present are
// the Jobs that have domains. A Job that is requested and present keeps its domain from others until it is placed; it
// is not reserved for it beyond that.
//
// Requests are served by priority, then those of sets that restart before others, then by age.
func Place(c *Cluster, present []Assignment, requests []Request, full WhenFull) []Result {
	p := newPlacer(c, present, requests)
	p.full = full
	out := make([]Result, len(requests))
	for _, i := range p.order(present) {
		out[i] = p.placeSet(&requests[i])
	}
	return out
}

// placer is one placement.
type placer struct {
	*index
	requests []Request
	full     WhenFull
	fits     map[fitKey]*fit
	// fixed are the Jobs that stay, by set.
	fixed  map[Name][]fixed
	blocks map[string]*blocks
}

// fixed is the domain of a Job that stays while other Jobs of its set are placed.
type fixed struct {
	space    *space
	domain   int32
	group    Name
	priority int32
}

func newPlacer(c *Cluster, present []Assignment, requests []Request) *placer {
	topologies := map[Name]bool{}
	for i := range present {
		topologies[present[i].Topology] = true
	}
	for i := range requests {
		for j := range requests[i].Groups {
			if g := &requests[i].Groups[j]; g.placeable() {
				topologies[g.Topology] = true
			}
		}
		for j := range requests[i].Running {
			topologies[requests[i].Running[j].Topology] = true
		}
	}
	p := &placer{index: newIndex(c, topologies), requests: requests, fixed: map[Name][]fixed{}, blocks: map[string]*blocks{}}
	wanted, replaced := p.wanted()
	p.fits = p.measure(c, wanted, replaced)
	p.hold(c, present, replaced)
	return p
}

// placeable returns whether the group has Jobs to place.
func (g *Group) placeable() bool {
	return len(g.Jobs) > 0 && g.Topology != (Name{}) && g.Shape != nil
}

// wanted returns for which shapes and keys room has to be measured, and the Jobs that are being placed.
func (p *placer) wanted() (wanted []*fit, replaced map[Name]bool) {
	replaced = map[Name]bool{}
	for i := range p.requests {
		for j := range p.requests[i].Groups {
			g := &p.requests[i].Groups[j]
			if !g.placeable() {
				continue
			}
			wanted = append(wanted, &fit{shape: g.Shape, space: p.spaces[g.Topology]})
			for k := range g.Jobs {
				replaced[g.Jobs[k].Key] = true
			}
		}
	}
	return wanted, replaced
}

// hold notes which sets have Jobs where, by their pods and by the present assignments.
func (p *placer) hold(c *Cluster, present []Assignment, replaced map[Name]bool) {
	note := p.noter(replaced)
	groups := make(map[Name]Name, len(present))
	for i := range present {
		a := &present[i]
		groups[a.Job] = a.Group
		p.cover(a.Topology, a.Domain, note(a.Set, a.Job, a.Group, a.Priority, true))
	}
	for i := range p.requests {
		for j := range p.requests[i].Running {
			a := &p.requests[i].Running[j]
			groups[a.Job] = a.Group
			p.cover(a.Topology, a.Domain, note(a.Set, a.Job, a.Group, a.Priority, false))
		}
	}
	for i := range c.Pods {
		pod := &c.Pods[i]
		node, known := p.nodeAt[pod.Node]
		if pod.Job == (Name{}) || !known {
			continue
		}
		f := note(pod.Owner, pod.Job, groups[pod.Job], pod.Priority, true)
		for _, s := range p.index.order {
			if d := s.ofNode[node]; d >= 0 {
				f(s, d)
			}
		}
	}
}

// noter returns what notes that a set has a Job in a domain: for Jobs of its own that are placed, and for those of other
// sets if it holds the domain.
func (p *placer) noter(replaced map[Name]bool) func(set, job, group Name, priority int32, holds bool) func(*space, int32) {
	requested := make(map[Name]bool, len(p.requests))
	for i := range p.requests {
		requested[p.requests[i].Set] = true
	}
	type place struct {
		space  Name
		domain int32
		job    Name
	}
	seen := map[place]bool{}
	return func(set, job, group Name, priority int32, holds bool) func(*space, int32) {
		stays := requested[set] && !replaced[job]
		return func(s *space, d int32) {
			if holds {
				s.holders[d].add(holder{set, priority, true})
			}
			if at := (place{s.topology, d, job}); stays && !seen[at] {
				seen[at] = true
				p.fixed[set] = append(p.fixed[set], fixed{s, d, group, priority})
			}
		}
	}
}

// order returns the requests in the order in which they are served.
func (p *placer) order(present []Assignment) []int {
	has := make(map[Name]bool, len(present))
	for i := range present {
		has[present[i].Job] = true
	}
	type rank struct {
		at, restart int
		priority    int32
	}
	ranks := make([]rank, len(p.requests))
	for i := range p.requests {
		ranks[i] = rank{at: i, restart: 1, priority: priorityOf(&p.requests[i])}
		for j := range p.requests[i].Groups {
			if slices.ContainsFunc(p.requests[i].Groups[j].Jobs, func(job Job) bool { return has[job.Key] }) {
				ranks[i].restart = 0
			}
		}
	}
	slices.SortStableFunc(ranks, func(a, b rank) int {
		x, y := &p.requests[a.at], &p.requests[b.at]
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.restart, b.restart), x.Created.Compare(y.Created.Time),
			compareNames(x.Set, y.Set))
	})
	out := make([]int, len(ranks))
	for i := range ranks {
		out[i] = ranks[i].at
	}
	return out
}

// priorityOf returns the priority of a set: the highest of its Jobs.
func priorityOf(r *Request) int32 {
	highest, found := int32(0), false
	for i := range r.Groups {
		if g := &r.Groups[i]; g.placeable() && (!found || g.Shape.priority > highest) {
			highest, found = g.Shape.priority, true
		}
	}
	return highest
}

// blocksOf returns the blocks of a space by the levels of a set.
func (p *placer) blocksOf(s *space, levels []Name) *blocks {
	key := s.topology.String()
	for _, level := range levels {
		key += " " + strconv.Quote(level.String())
	}
	b, known := p.blocks[key]
	if !known {
		b = newBlocks(s, p.nodes, levels)
		p.blocks[key] = b
	}
	return b
}
