// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"math"
	"slices"
)

const (
	// maxTakers is how many sets a shortage names.
	maxTakers = 10
	// reasonSelector is the reason of nodes that the node selector or the node affinity of the pods leaves out,
	// reasonTaint that of nodes with a taint that the pods do not tolerate, reasonMixed that of domains whose nodes have
	// both.
	reasonSelector = "node selector or affinity"
	reasonTaint    = "taint "
	reasonMixed    = "different reasons"
	// reasonSpread is the reason of a domain that has enough of each resource, but not on the same nodes.
	reasonSpread = "free resources spread over nodes"
)

// shortage explains why Jobs have no domain of a tier or better, for the group of the first one that has none.
func (s *setPlacer) shortage(m *matching, tier int8) *Shortage {
	first := slices.IndexFunc(m.slots, func(slot slot) bool { return slot.domain < 0 })
	for _, c := range m.classes {
		if c.count(tier) < len(c.slots) {
			first = c.slots[0]
			break
		}
	}
	c := m.classes[m.slots[max(first, 0)].class]
	out := &Shortage{
		Group: c.group.Name, Topology: m.space.topology, Jobs: len(c.group.Jobs), Others: len(m.slots) - len(c.group.Jobs),
		Pods:    int(c.group.Pods),
		Domains: len(m.space.domains), Unknown: c.fit.shape.unknown,
	}
	takers, unsuitable, lacking := map[Name]int{}, map[string]int{}, map[string]int{}
	matcher := newMatcher(c.fit.shape)
	s.countAbove(c.fit.shape.priority)
	for d, tier := range c.tier {
		switch {
		case tier == tierTaken:
			out.Taken++
			takers[s.taker(m.space, int32(d))]++
		case tier <= lastWithRoom:
			out.Usable++
		case c.fit.suitable[d] == 0:
			unsuitable[s.whyUnsuitable(matcher, m.space.nodesOf[d])]++
		default:
			lacking[s.lack(c.choices, int32(d), out)]++
		}
	}
	out.Unsuitable, out.Lacking = causes(unsuitable), causes(lacking)
	out.setTakers(takers)
	return out
}

// taker returns the set that takes a domain: another one, or the set itself.
func (s *setPlacer) taker(space *space, d int32) Name {
	if h := space.holders[d].besides(s.request.Set); h.present {
		return h.set
	}
	return s.request.Set
}

func (s *Shortage) setTakers(takers map[Name]int) {
	s.Takers = len(takers)
	for set, n := range takers {
		s.TakenBy = append(s.TakenBy, Taker{set, n})
	}
	slices.SortFunc(s.TakenBy, func(a, b Taker) int { return cmp.Or(cmp.Compare(b.Domains, a.Domains), compareNames(a.Set, b.Set)) })
	s.TakenBy = slices.Clone(s.TakenBy[:min(len(s.TakenBy), maxTakers)])
}

func causes(counts map[string]int) (out []Cause) {
	for reason, n := range counts {
		out = append(out, Cause{reason, n})
	}
	slices.SortFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Domains, a.Domains), cmp.Compare(a.Reason, b.Reason))
	})
	return out[:min(len(out), maxTakers)]
}

// whyUnsuitable returns why none of the nodes suits.
func (s *setPlacer) whyUnsuitable(m *matcher, nodes []int32) string {
	reason := ""
	for _, i := range nodes {
		this := reasonSelector
		if taint := m.untolerated(s.nodes[i]); taint != nil {
			this = reasonTaint + taint.Key.String()
		}
		if reason != "" && reason != this {
			return reasonMixed
		}
		reason = this
	}
	return reason
}

// lack returns the resource of which a domain has too little. The domain with most room is described in full.
func (s *setPlacer) lack(c *choices, d int32, out *Shortage) string {
	room, request := s.rooms.free, s.rooms.vector(c.fit.shape.requests)
	if c.fit.shape.preempts {
		room = s.rooms.above
	}
	least, pods := -1, c.group.Pods
	for r, value := range request {
		if value <= 0 {
			continue
		}
		if n := s.podsBy(c, d, r, room); n < pods {
			least, pods = r, n
		}
	}
	if has := c.fit.preempting[d]; out.Closest == (Name{}) || int(has) > out.ClosestPods {
		out.Closest, out.ClosestPods, out.Missing = c.fit.space.domains[d], int(has), Amount{}
		if least >= 0 {
			out.Missing = Amount{s.rooms.resources[least], saturated(request[least], int64(c.group.Pods-pods))}
		}
	}
	if least < 0 {
		return reasonSpread
	}
	return s.rooms.resources[least].String()
}

// podsBy returns for how many pods the nodes of a domain have enough of one resource.
func (s *setPlacer) podsBy(c *choices, d int32, resource int, room []int64) int32 {
	n, width := int32(0), len(s.rooms.resources)
	suits, request := s.suitable(c.fit.shape), s.rooms.vector(c.fit.shape.requests)
	for _, node := range c.fit.space.nodesOf[d] {
		if suits[node] == suitsNow {
			n = add(n, int32(min(max(room[int(node)*width+resource], 0)/request[resource], math.MaxInt32)))
		}
	}
	return n
}

func saturated(a, b int64) int64 {
	if a > 0 && b > maxAmount/a {
		return maxAmount
	}
	return a * b
}
