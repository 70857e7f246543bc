// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// index is a snapshot prepared for one placement: nodes by domain, what they have and what is used of it.
type index struct {
	nodes  []*Node
	nodeAt map[Name]int32
	spaces map[Name]*space
	// order lists the spaces in the order of their keys.
	order []*space
	rooms rooms
	// suits is, for constraints of shapes, which nodes match.
	suits map[[32]byte][]suits
}

// space is the domains of one topology key.
type space struct {
	topology Name
	// domains are sorted, so that their numbers are in the order of their names.
	domains []Name
	at      map[Name]int32
	// ofNode is the domain of each node, or -1, and nodesOf the nodes of each domain.
	ofNode  []int32
	nodesOf [][]int32
	holders []holders
}

// newIndex indexes the nodes by the topology keys.
func newIndex(c *Cluster, topologies map[Name]bool) *index {
	x := &index{
		nodes: make([]*Node, 0, len(c.Nodes)), nodeAt: make(map[Name]int32, len(c.Nodes)), spaces: make(map[Name]*space, len(topologies)),
		suits: map[[32]byte][]suits{},
	}
	for i := range c.Nodes {
		x.nodes = append(x.nodes, &c.Nodes[i])
	}
	slices.SortStableFunc(x.nodes, func(a, b *Node) int { return compareNames(a.Name, b.Name) })
	for i, node := range x.nodes {
		x.nodeAt[node.Name] = int32(i)
	}
	for key := range topologies {
		s := newSpace(key, x.nodes)
		x.spaces[key] = s
		x.order = append(x.order, s)
	}
	slices.SortFunc(x.order, func(a, b *space) int { return compareNames(a.topology, b.topology) })
	return x
}

// newSpace lists the domains of a key. An empty label value is no domain.
func newSpace(key Name, nodes []*Node) *space {
	s := &space{topology: key, at: map[Name]int32{}, ofNode: make([]int32, len(nodes))}
	for _, node := range nodes {
		if value, _ := node.label(key); value != (Name{}) {
			s.at[value] = 0
		}
	}
	for value := range s.at {
		s.domains = append(s.domains, value)
	}
	slices.SortFunc(s.domains, compareNames)
	for i, value := range s.domains {
		s.at[value] = int32(i)
	}
	s.nodesOf, s.holders = make([][]int32, len(s.domains)), make([]holders, len(s.domains))
	for i, node := range nodes {
		s.ofNode[i] = -1
		if value, _ := node.label(key); value != (Name{}) {
			d := s.at[value]
			s.ofNode[i] = d
			s.nodesOf[d] = append(s.nodesOf[d], int32(i))
		}
	}
	return s
}

// holder is a set that has a Job in a domain.
type holder struct {
	set      Name
	priority int32
	present  bool
}

// holders are the two sets with the Jobs of highest priority in a domain. The second matters to the first.
type holders [2]holder

func stronger(a, b holder) bool {
	if a.present != b.present {
		return a.present
	}
	return cmp.Or(cmp.Compare(b.priority, a.priority), compareNames(a.set, b.set)) < 0
}

func (h *holders) add(x holder) {
	switch {
	case h[0].present && h[0].set == x.set:
		h[0].priority = max(h[0].priority, x.priority)
	case h[1].present && h[1].set == x.set:
		h[1].priority = max(h[1].priority, x.priority)
	case stronger(x, h[1]):
		h[1] = x
	}
	if stronger(h[1], h[0]) {
		h[0], h[1] = h[1], h[0]
	}
}

// besides returns the one of highest priority besides a set.
func (h *holders) besides(set Name) holder {
	if h[0].present && h[0].set == set {
		return h[1]
	}
	return h[0]
}

// cover calls f for each domain in which an assignment has a Job: its own, and those of other keys that share nodes with it.
func (x *index) cover(topology, domain Name, f func(*space, int32)) {
	own := x.spaces[topology]
	if own == nil {
		return
	}
	d, exists := own.at[domain]
	if !exists {
		return
	}
	f(own, d)
	for _, s := range x.order {
		if s == own {
			continue
		}
		last := int32(-1)
		for _, node := range own.nodesOf[d] {
			if other := s.ofNode[node]; other >= 0 && other != last {
				f(s, other)
				last = other
			}
		}
	}
}
