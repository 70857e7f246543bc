// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"cmp"
	"fmt"
	"slices"
)

// schedule binds pods, the most important first, and preempts others for them.
func (h *history) schedule() {
	var pending []*pod
	for _, p := range h.pods {
		if p.node == nil {
			pending = append(pending, p)
		}
	}
	slices.SortStableFunc(pending, func(a, b *pod) int { return cmp.Compare(b.priority, a.priority) })
	for _, p := range pending {
		if !slices.Contains(h.pods, p) {
			continue // deleted with its Job, which lost another pod
		}
		if p.nominated != nil {
			h.bindNominated(p)
			continue
		}
		if n := h.nodeFor(p, func(*pod) bool { return false }); n != nil {
			p.node = n
			continue
		}
		if n := h.nodeFor(p, func(other *pod) bool { return other.priority < p.priority }); n != nil && !p.never {
			h.preempt(p, n)
		}
	}
}

// nodeFor returns a node with room for a pod, if those that make way are gone.
func (h *history) nodeFor(p *pod, makesWay func(*pod) bool) *node {
	for _, n := range h.nodes {
		if h.free(n, makesWay) >= p.cpu && h.allowed(p, n) {
			return n
		}
	}
	return nil
}

func (h *history) preempt(p *pod, n *node) {
	for h.free(n, func(*pod) bool { return false }) < p.cpu {
		victim := -1
		for i, other := range h.pods {
			if other.place() == n && other.priority < p.priority && (victim < 0 || other.priority < h.pods[victim].priority) {
				victim = i
			}
		}
		lost := h.pods[victim]
		if lost.node == nil {
			lost.nominated = nil // it looks for another place
			continue
		}
		h.pods = slices.Delete(h.pods, victim, victim+1)
		h.lose(lost)
	}
	p.nominated, p.bindAt = n, h.now+h.dice.IntN(9)
}

// bindNominated binds a pod where preemption has made room, unless other pods have taken that room.
func (h *history) bindNominated(p *pod) {
	if h.now < p.bindAt {
		return
	}
	n := p.nominated
	if p.nominated = nil; h.free(n, func(*pod) bool { return false }) >= p.cpu && h.allowed(p, n) {
		p.node = n
	}
}

// lose has the set of a pod that is gone fail, whose own pods terminate, or the Job replace the pod.
func (h *history) lose(p *pod) {
	if p.job == nil || p.terminating || p.job.done {
		return
	}
	if at := slices.Index(p.job.pods, p); at >= 0 && p.job.wasReady && h.percent(40) {
		next := &pod{job: p.job, cpu: p.cpu, priority: p.priority, never: p.never, since: h.now}
		p.job.pods[at] = next
		h.pods = append(h.pods, next)
		return
	}
	h.restart(p.job.set)
}

// allowed is what node selectors say, and affinity and anti-affinity of the Jobs that have those.
func (h *history) allowed(p *pod, n *node) bool {
	if p.job == nil {
		return true
	}
	if a := p.job.assignment; a != nil && n.domain(p.job.set.topology) != a.Domain.String() {
		return false
	}
	return !slices.ContainsFunc(h.pods, func(other *pod) bool {
		return other != p && other.job != nil && other.place() != nil && p.barredBy(other, n)
	})
}

// barredBy returns whether a pod may not run on a node because of where another one is.
func (p *pod) barredBy(other *pod, n *node) bool {
	mine, its, at := p.job.set.topology, other.job.set.topology, other.place()
	together := n.domain(mine) == at.domain(mine)
	if p.job.affinity && other.job == p.job {
		return !other.terminating && !together
	}
	return p.job.repels(other.job) && together || other.job.repels(p.job) && n.domain(its) == at.domain(its)
}

// repels returns whether the pods of a Job keep those of another one out of their domain.
func (j *job) repels(other *job) bool {
	return j.set.priority == other.set.priority && (j.set != other.set || j.affinity && j != other)
}

// autoscale adds a node for a pod that is pending: where it has to run, or in a new rack.
func (h *history) autoscale() {
	if !h.elastic || h.now%3 != 0 {
		return
	}
	for _, p := range h.pods {
		if p.place() != nil || h.now-p.since < 2 {
			continue
		}
		for _, n := range h.nodes {
			if h.allowed(p, n) && h.sizeOf(n.rack) < maxNodes {
				h.nodes = append(h.nodes, &node{name: fmt.Sprintf("n%02d", len(h.nodes)), rack: n.rack, block: n.block, since: h.now})
				return
			}
		}
		if p.job != nil && p.job.assignment == nil && len(h.nodes) < 100 {
			h.addNode(len(h.nodes) + 10)
			return
		}
	}
}

func (h *history) sizeOf(name string) (n int) {
	for _, other := range h.nodes {
		if other.rack == name {
			n++
		}
	}
	return n
}

// disturb has something happen.
func (h *history) disturb() {
	if h.percent(12) && len(h.sets) < 7 {
		h.addSet()
	}
	if h.percent(4) {
		n := h.nodes[h.dice.IntN(len(h.nodes))]
		h.toggle(n)
	}
	if h.percent(15) {
		n := h.nodes[h.dice.IntN(len(h.nodes))]
		if p := (&pod{node: n, cpu: 1 + h.dice.IntN(3), priority: int32(h.dice.IntN(3)*5 - 5)}); h.free(n, func(*pod) bool { return false }) >= p.cpu {
			h.pods = append(h.pods, p)
		}
	}
	if h.percent(15) {
		h.remove(func(p *pod) bool { return p.job == nil && h.percent(50) })
	}
	if len(h.sets) == 0 {
		return
	}
	switch s := h.sets[h.dice.IntN(len(h.sets))]; {
	case s.active && h.percent(4):
		h.restart(s)
	case s.suspended && h.percent(20):
		s.suspended = false
	case !s.suspended && !s.finished && h.percent(2):
		h.suspend(s)
	}
}

// toggle loses a node with what runs there, or brings it back.
func (h *history) toggle(n *node) {
	n.down, n.since = !n.down, h.now
	if !n.down {
		return
	}
	var lost []*pod
	for _, p := range h.pods {
		if p.nominated == n {
			p.nominated = nil
		}
	}
	h.remove(func(p *pod) bool {
		if p.node == n {
			lost = append(lost, p)
		}
		return p.node == n
	})
	for _, p := range lost {
		h.lose(p)
	}
}

// suspend stops a set, which then holds no domain.
func (h *history) suspend(s *set) {
	h.restart(s)
	for _, j := range s.jobs() {
		j.assignment = nil
	}
	s.suspended = true
}

// complete ends Jobs that have run for some time, and sets all of whose Jobs have ended.
func (h *history) complete() {
	for _, s := range h.sets {
		if !s.active {
			continue
		}
		left := false
		for i, g := range s.groups {
			for _, j := range g.jobs {
				if j.ready() && !j.wasReady {
					j.wasReady, j.readySince = true, h.now
				}
				// Jobs of the first group run until the second has what it needs from them.
				needed := i == 0 && len(s.groups) > 1 && s.groups[1].depends && !s.groups[1].complete && !allStarted(s.groups[1])
				if j.ready() && !j.done && !needed && h.now-j.readySince >= 5 {
					h.deletePods(j)
					j.done = true
				}
				left = left || !j.done
			}
		}
		if s.finished = !left; s.finished {
			s.active = false
		}
	}
}

func allStarted(g *group) bool {
	return !slices.ContainsFunc(g.jobs, func(j *job) bool { return !j.wasReady })
}

// step is one minute.
func (h *history) step() {
	h.now++
	h.remove(func(p *pod) bool { return p.terminating })
	if !h.stabilizing {
		h.disturb()
	}
	h.host()
	h.schedule()
	h.autoscale()
	h.complete()
}

const (
	minutes = 150
	// extraMinutes is how long sets may take once nothing goes wrong any more. Moves come up to an hour after each
	// other.
	extraMinutes = 6_000
)

// run returns the rule that is broken, if any.
func run(seed uint64, m mutant) string {
	h := newHistory(seed, m)
	for h.broken == "" && h.now < minutes {
		h.step()
	}
	h.stabilizing = true
	h.remove(func(p *pod) bool { return p.job == nil })
	for _, n := range h.nodes {
		if n.down {
			h.toggle(n)
		}
	}
	for _, s := range h.sets {
		s.suspended = false
	}
	unfinished := func(s *set) bool { return !s.finished }
	for h.broken == "" && h.now < minutes+extraMinutes && slices.ContainsFunc(h.sets, unfinished) {
		h.step()
	}
	if i := slices.IndexFunc(h.sets, unfinished); i >= 0 {
		h.fail(finish, "set %s has not finished", h.sets[i].name)
	}
	return h.broken
}
