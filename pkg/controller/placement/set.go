// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// setPlacer places the Jobs of one set.
type setPlacer struct {
	*placer
	request *Request
	waves   []int
	result  Result
	// blocked are the nodes in the domains of Jobs of the present wave and of another key.
	blocked []bool
}

// placeSet places all Jobs of a set, or none.
func (p *placer) placeSet(r *Request) Result {
	s := &setPlacer{placer: p, request: r, waves: wavesOf(r.Groups)}
	s.result = Result{Set: r.Set, Assignments: make([]Assignment, jobsOf(r))}
	last := -1
	for _, wave := range s.waves {
		if wave == last {
			continue
		}
		last, s.blocked = wave, make([]bool, len(p.nodes))
		for _, space := range p.index.order {
			if !s.placeWave(wave, space) {
				s.result.Outcome = Taken
				return s.finish()
			}
		}
	}
	return s.finish()
}

// finish says what to do about the outcome, and holds the domains of the set from those that are served after it.
func (s *setPlacer) finish() Result {
	s.result.Action = s.full.action(s.result.Outcome)
	if s.result.Action != Assign {
		s.result.Assignments, s.result.Displaces = nil, nil
		return s.result
	}
	for i := range s.result.Assignments {
		a := &s.result.Assignments[i]
		s.cover(a.Topology, a.Domain, func(space *space, d int32) { space.holders[d].add(holder{a.Set, a.Priority, true}) })
	}
	return s.result
}

func jobsOf(r *Request) (n int) {
	for i := range r.Groups {
		n += len(r.Groups[i].Jobs)
	}
	return n
}

// placeWave places the Jobs of one wave that want domains of one key.
func (s *setPlacer) placeWave(wave int, space *space) bool {
	m := s.newMatching(wave, space)
	last := tierRoom
	for ; last < tiers; last++ {
		if last > lastLarge && s.fitsAlone(m) {
			break // what is left is too small, and others have what is not
		}
		if m.place(last) {
			s.record(m)
			return true
		}
		if last == lastWithRoom && s.result.Shortage == nil {
			s.result.Outcome, s.result.Shortage = LacksRoom, s.shortage(m, last)
		}
	}
	s.result.Shortage = s.shortage(m, last-1)
	return false
}

// fitsAlone returns whether there would be domains that are large enough if no other set had any.
func (s *setPlacer) fitsAlone(m *matching) bool {
	alone := &matching{space: m.space, blocks: &blocks{}, slots: slices.Clone(m.slots), search: maxSearch}
	known := map[*choices]*choices{}
	for _, c := range m.classes {
		if known[c.choices] == nil {
			known[c.choices] = c.emptied(m.fixed)
		}
		alone.classes = append(alone.classes, &class{choices: known[c.choices], slots: c.slots})
	}
	return alone.place(tierRoom)
}

// newMatching lists the Jobs of a wave that want domains of a key, and the domains for them.
func (s *setPlacer) newMatching(wave int, space *space) *matching {
	m := &matching{space: space, blocks: s.blocksOf(space, s.request.Levels), search: maxSearch}
	for _, d := range s.fixed[s.request.Set] {
		if d.space == space {
			m.fixed = append(m.fixed, d.domain)
		}
	}
	at := 0
	for i := range s.request.Groups {
		g := &s.request.Groups[i]
		if g.placeable() && g.Topology == space.topology && s.waves[i] == wave {
			f := s.fits[keyOf(g.Topology, g.Shape)]
			m.addGroup(newChoices(g, f, s.tiersOf(g, f, wave)), at)
		}
		at += len(g.Jobs)
	}
	return m
}

// maxAvoided is how many domains a Job can avoid.
const maxAvoided = 16

// addGroup adds the Jobs of a group in the order of their indices. Those that avoid the same domains are a class.
func (m *matching) addGroup(c *choices, first int) {
	jobs := make([]int, len(c.group.Jobs))
	for i := range jobs {
		jobs[i] = i
	}
	slices.SortStableFunc(jobs, func(a, b int) int { return cmp.Compare(c.group.Jobs[a].Index, c.group.Jobs[b].Index) })
	classes := map[[maxAvoided]int32]int{}
	for _, i := range jobs {
		job := &c.group.Jobs[i]
		var avoid []int32
		for _, name := range job.Avoid[:min(len(job.Avoid), maxAvoided)] {
			if d, exists := m.space.at[name]; exists {
				avoid = append(avoid, d)
			}
		}
		slices.Sort(avoid)
		var key [maxAvoided]int32
		for i, d := range slices.Compact(avoid) {
			key[i] = d + 1
		}
		at, known := classes[key]
		if !known {
			at = len(m.classes)
			classes[key] = at
			m.classes = append(m.classes, &class{choices: c, avoid: avoid})
		}
		m.classes[at].slots = append(m.classes[at].slots, len(m.slots))
		m.slots = append(m.slots, slot{job: job, at: first + i, class: at, domain: -1})
	}
}

// tiersOf returns how good each domain is for the Jobs of a group.
func (s *setPlacer) tiersOf(g *Group, f *fit, wave int) []int8 {
	out := make([]int8, len(f.space.domains))
	for d := range out {
		h := f.space.holders[d].besides(s.request.Set)
		out[d] = tierOf(g, f, int32(d), h)
	}
	waveOf := make(map[Name]int, len(s.request.Groups))
	for i := range s.request.Groups {
		waveOf[s.request.Groups[i].Name] = s.waves[i]
	}
	for _, own := range s.fixed[s.request.Set] {
		other, known := waveOf[own.group]
		if own.space != f.space || known && other != wave {
			continue
		}
		h := holder{s.request.Set, own.priority, true}
		out[own.domain] = max(out[own.domain], tierOf(g, f, own.domain, h))
	}
	for node, blocked := range s.blocked {
		if d := f.space.ofNode[node]; blocked && d >= 0 {
			out[d] = tierTaken
		}
	}
	return out
}

func tierOf(g *Group, f *fit, d int32, h holder) int8 {
	lower := h.present && f.shape.preempts && h.priority < f.shape.priority
	switch {
	case h.present && !lower:
		return tierTaken
	case !lower && f.free[d] >= g.Pods:
		return tierRoom
	}
	tier := tierSmall
	switch {
	case f.preempting[d] >= g.Pods:
		tier = tierPreempting
	case f.empty[d] >= g.Pods:
		tier = tierShort
	}
	if lower {
		tier++
	}
	return tier
}

// record turns the domains of a wave into assignments.
func (s *setPlacer) record(m *matching) {
	for i := range m.slots {
		slot := &m.slots[i]
		c := m.classes[slot.class]
		s.result.Assignments[slot.at] = Assignment{
			Set: s.request.Set, Group: c.group.Name, Job: slot.job.Key, Topology: m.space.topology, Domain: m.space.domains[slot.domain],
			Priority: c.fit.shape.priority, Nodes: c.fit.suitable[slot.domain],
		}
		if tier := c.tier[slot.domain]; tier == tierLower || tier == tierLowerShort || tier == tierLowerSmall {
			h := m.space.holders[slot.domain].besides(s.request.Set)
			if !h.present {
				h.set = s.request.Set
			}
			s.result.Displaces = append(s.result.Displaces, Displaced{h.set, m.space.topology, m.space.domains[slot.domain]})
		}
		for _, node := range m.space.nodesOf[slot.domain] {
			s.blocked[node] = true
		}
	}
	slices.SortFunc(s.result.Displaces, func(a, b Displaced) int {
		return cmp.Or(compareNames(a.Set, b.Set), compareNames(a.Topology, b.Topology), compareNames(a.Domain, b.Domain))
	})
}
