// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"cmp"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// The rules.
const (
	exclusive     = "no two Jobs have one domain, unless the later one preempts the other"
	whole         = "all Jobs of a set have a domain, or none"
	truthful      = "a Job that is placed has room for its pods"
	first         = "the first set in order is placed if there is room"
	same          = "a Job returns to its domain if that is as it was"
	deterministic = "equal snapshots lead to equal results"
	moved         = "only Jobs that were never ready move, after some time, and not while a node is nominated or nodes come, and ever more rarely"
	finish        = "every set finishes"
)

// checkResults checks what Place returned, before it is carried out.
func (h *history) checkResults(c *placement.Cluster, present []placement.Assignment, requests []placement.Request, sets []*set, results []placement.Result) {
	h.checkDeterminism(c, present, requests, results)
	for i, s := range sets {
		r := &results[i]
		wanted := 0
		for _, g := range requests[i].Groups {
			wanted += len(g.Jobs)
		}
		if n := len(r.Assignments); n != 0 && n != wanted || (n == 0) != (r.Action != placement.Assign) || (r.Shortage == nil) != (r.Outcome == placement.Placed) {
			h.fail(whole, "%s: %d of %d, %s, %s", s.name, n, wanted, r.Outcome, r.Action)
			return
		}
		if r.Outcome == placement.Placed {
			h.checkRoom(s, r)
		}
	}
	h.checkFirst(sets, results)
}

// checkDeterminism asks again, with everything in another order.
func (h *history) checkDeterminism(c *placement.Cluster, present []placement.Assignment, requests []placement.Request, results []placement.Result) {
	other := &placement.Cluster{Nodes: slices.Clone(c.Nodes), Pods: slices.Clone(c.Pods)}
	h.dice.Shuffle(len(other.Nodes), func(i, j int) { other.Nodes[i], other.Nodes[j] = other.Nodes[j], other.Nodes[i] })
	h.dice.Shuffle(len(other.Pods), func(i, j int) { other.Pods[i], other.Pods[j] = other.Pods[j], other.Pods[i] })
	present, requests = slices.Clone(present), slices.Clone(requests)
	slices.Reverse(present)
	slices.Reverse(requests)
	again := h.mutant.place(other, present, requests, h.full)
	slices.Reverse(again)
	if diff := gocmp.Diff(results, again, cmpopts.EquateComparable(placement.Name{}, placement.Amounts{})); diff != "" {
		h.fail(deterministic, "%s", diff)
	}
}

// checkRoom makes sure that a Job that is placed finds room, if nothing of the set and nothing that gives way to it runs any more.
func (h *history) checkRoom(s *set, r *placement.Result) {
	room := h.capacities(s, func(n *node) int {
		return h.free(n, func(p *pod) bool {
			return p.job != nil && (p.job.set == s || h.isRequested(p.job)) || p.priority < s.priority && !s.never
		})
	})
	for _, a := range r.Assignments {
		if i := slices.IndexFunc(s.groups, func(g *group) bool { return placement.NameOf(g.name) == a.Group }); room[a.Domain.String()] < s.groups[i].pods {
			h.fail(truthful, "%s in %s: %d of %d pods", a.Job, a.Domain, room[a.Domain.String()], s.groups[i].pods)
		}
	}
}

// isRequested returns whether a Job is being placed, so that what it has now is about to go.
func (h *history) isRequested(j *job) bool {
	return !j.set.active && !j.set.suspended && !j.set.finished
}

// checkFirst looks at the first set in order: whether it was placed if it could be, and where it was before.
func (h *history) checkFirst(sets []*set, results []placement.Result) {
	returning := func(s *set) int {
		if slices.ContainsFunc(s.jobs(), func(j *job) bool { return j.assignment != nil }) {
			return 0
		}
		return 1
	}
	order := make([]int, len(sets))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := sets[a], sets[b]
		return cmp.Or(cmp.Compare(y.priority, x.priority), cmp.Compare(returning(x), returning(y)), cmp.Compare(x.created, y.created), cmp.Compare(x.name, y.name))
	})
	s, r := sets[order[0]], &results[order[0]]
	if h.mutant.byStage {
		return
	}
	taken := h.takenFrom(s, func(other *set) bool { return other == s || other.priority < s.priority && !s.never })
	large := h.capacities(s, func(*node) int { return cores })
	room := h.capacities(s, func(n *node) int { return h.free(n, func(p *pod) bool { return p.job != nil && h.isRequested(p.job) }) })
	h.checkReturn(s, r, room)
	for d := range taken {
		delete(large, d)
		delete(room, d)
	}
	if fits(s, large) && r.Outcome == placement.Taken || fits(s, room) && r.Outcome != placement.Placed {
		h.fail(first, "%s: %s, %s", s.name, r.Outcome, r.Shortage.Message())
	}
}

// takenFrom returns the domains with Jobs of sets that do not give way to a set.
func (h *history) takenFrom(s *set, gives func(*set) bool) map[string]bool {
	taken := map[string]bool{}
	for _, p := range h.pods {
		if p.job != nil && p.place() != nil && !gives(p.job.set) {
			taken[p.place().domain(s.topology)] = true
		}
	}
	for _, other := range h.sets {
		for _, j := range other.jobs() {
			if j.assignment == nil || j.done || gives(other) {
				continue
			}
			for _, n := range h.nodes {
				if n.domain(other.topology) == j.assignment.Domain.String() {
					taken[n.domain(s.topology)] = true
				}
			}
		}
	}
	return taken
}

// checkReturn looks at the first set if it restarts and all of its Jobs can return.
func (h *history) checkReturn(s *set, r *placement.Result, room map[string]int) {
	if len(s.groups) > 1 || r.Action != placement.Assign || len(r.Displaces) > 0 {
		return
	}
	others := h.takenFrom(s, func(other *set) bool { return other == s })
	nodes := map[string]int32{}
	for _, n := range h.nodes {
		if !n.down {
			nodes[n.domain(s.topology)]++
		}
	}
	used := map[placement.Name]bool{}
	for i, j := range s.jobs() {
		if j.previous == nil {
			continue
		}
		d := j.previous.Domain
		there := d.String()
		if used[d] || others[there] || room[there] < s.groups[0].pods || nodes[there] < max(j.previous.Nodes, 1) {
			continue
		}
		used[d] = true
		if r.Assignments[i].Domain != d {
			h.fail(same, "%s goes to %s, was in %s", j.key, r.Assignments[i].Domain, d)
		}
	}
}

// checkPresent looks for two Jobs in one domain, once results were carried out. With affinity, the scheduler decides
// who was first, and pods show it.
func (h *history) checkPresent() {
	var all []*job
	for _, s := range h.sets {
		for _, j := range s.jobs() {
			if j.assignment != nil && !j.done && (!h.elastic || j.running()) {
				all = append(all, j)
			}
		}
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !h.overlap(a, b) || h.mayShare(a, b) {
				continue
			}
			h.fail(exclusive, "%s in %s and %s in %s", a.key, a.assignment.Domain, b.key, b.assignment.Domain)
		}
	}
}

func (j *job) running() bool {
	return slices.ContainsFunc(j.pods, func(p *pod) bool { return p.node != nil })
}

func (h *history) overlap(a, b *job) bool {
	return slices.ContainsFunc(h.nodes, func(n *node) bool {
		return n.domain(a.set.topology) == a.assignment.Domain.String() && n.domain(b.set.topology) == b.assignment.Domain.String()
	})
}

// mayShare returns whether two Jobs may have one domain: one after the other, or the later one by preemption.
func (h *history) mayShare(a, b *job) bool {
	if a.set == b.set {
		g := a.set.groups[len(a.set.groups)-1]
		return g.depends && g.complete && h.groupOf(a) != h.groupOf(b)
	}
	if a.placed < b.placed {
		a, b = b, a
	}
	// Pods repel those of the same priority only.
	return a.set.priority > b.set.priority && !a.set.never || h.elastic && a.set.priority != b.set.priority
}

// checkMove looks at a Job that is about to move.
func (h *history) checkMove(p placement.Pending) {
	wait := min(5*time.Minute<<min(p.Moves, 10), time.Hour)
	since := func(t time.Time) time.Duration { return at(h.now).Sub(t) }
	early := since(p.Since) < wait || since(p.NodesGained) < wait || p.Moves > 0 && since(p.Moved) < wait
	if p.Ready || p.Nominated || p.Since.IsZero() || early {
		h.fail(moved, "%+v", p)
	}
}

// checkMoved looks at a Job that is to move to a domain, while its own pods are there still.
func (h *history) checkMoved(j *job, domain string) {
	room := h.capacities(j.set, func(n *node) int {
		return h.free(n, func(p *pod) bool { return p.job == j || p.priority < j.set.priority && !j.set.never })
	})
	if wanted := h.groupOf(j).pods; room[domain] < wanted {
		h.fail(truthful, "%s moves to %s: %d of %d pods", j.key, domain, room[domain], wanted)
	}
}
