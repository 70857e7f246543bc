// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// request returns the request of a set for the Jobs that are wanted.
func (h *history) request(s *set, wanted func(*job) bool, avoided string) placement.Request {
	r := placement.Request{Set: placement.NameOf(s.name), Created: metav1.NewTime(at(s.created))}
	if s.levels {
		r.Levels = []placement.Name{placement.NameOf(block), placement.NameOf(rack)}
	}
	shape := s.shape()
	for _, g := range s.groups {
		out := placement.Group{Name: placement.NameOf(g.name), Topology: placement.NameOf(s.topology), Shape: shape, Pods: int32(g.pods)}
		if g.depends {
			out.DependsOn = []placement.Dependency{{Group: 0, Complete: g.complete}}
		}
		for _, j := range g.jobs {
			if !wanted(j) {
				continue
			}
			wish := placement.Job{Key: placement.NameOf(j.key), Index: int32(j.index)}
			if j.previous != nil {
				wish.Previous, wish.PreviousNodes = j.previous.Domain, j.previous.Nodes
			}
			if avoided != "" {
				wish.Avoid = []placement.Name{placement.NameOf(avoided)}
			}
			out.Jobs = append(out.Jobs, wish)
		}
		r.Groups = append(r.Groups, out)
	}
	return r
}

// present returns the Jobs that have a domain and are not complete.
func (h *history) present() (out []placement.Assignment) {
	for _, s := range h.sets {
		for _, j := range s.jobs() {
			if j.assignment != nil && !j.done {
				out = append(out, *j.assignment)
			}
		}
	}
	return out
}

// host does what the controller will do.
func (h *history) host() {
	h.placeWaiting()
	for _, s := range h.sets {
		if !s.active {
			continue
		}
		for _, g := range s.groups {
			if h.mayStart(s, g) {
				h.start(s, g)
			}
		}
		for _, j := range s.jobs() {
			h.adopt(j)
			h.move(j)
		}
	}
}

// placeWaiting asks for all sets that wait, in one call.
func (h *history) placeWaiting() {
	var waiting []*set
	var requests []placement.Request
	for _, s := range h.sets {
		wanted := func(j *job) bool { return !s.active }
		if h.mutant.byStage {
			wanted = func(j *job) bool {
				return !j.done && !j.created && h.mayStart(s, h.groupOf(j)) && (!s.active || j.assignment == nil && !j.affinity)
			}
		}
		if !s.suspended && !s.finished && slices.ContainsFunc(s.jobs(), wanted) {
			waiting, requests = append(waiting, s), append(requests, h.request(s, wanted, ""))
		}
	}
	if len(waiting) == 0 {
		return
	}
	c, present := h.cluster(), h.present()
	results := h.mutant.place(c, present, requests, h.full)
	h.checkResults(c, present, requests, waiting, results)
	for i, s := range waiting {
		h.apply(s, &requests[i], &results[i])
	}
	h.checkPresent()
}

func (h *history) groupOf(j *job) *group {
	return j.set.groups[slices.IndexFunc(j.set.groups, func(g *group) bool { return slices.Contains(g.jobs, j) })]
}

func (h *history) apply(s *set, r *placement.Request, result *placement.Result) {
	// Higher priorities are served first, so a set that preempts comes after the set that it preempts only if that set was
	// placed in an earlier call.
	h.placed++
	assigned := map[string]*placement.Assignment{}
	for i := range result.Assignments {
		assigned[result.Assignments[i].Job.String()] = &result.Assignments[i]
	}
	for i := range r.Groups {
		for _, wish := range r.Groups[i].Jobs {
			j := s.jobs()[wish.Index]
			j.assignment, j.affinity, j.placed = assigned[j.key], result.Action == placement.Affinity, h.placed
		}
	}
	s.active = s.active || result.Action != placement.Wait
}

// mayStart returns whether what a replicatedJob depends on has happened.
func (h *history) mayStart(s *set, g *group) bool {
	if !g.depends {
		return true
	}
	return !slices.ContainsFunc(s.groups[0].jobs, func(j *job) bool { return !j.done && (g.complete || !j.ready()) })
}

func (j *job) ready() bool {
	return j.created && !slices.ContainsFunc(j.pods, func(p *pod) bool { return p.node == nil })
}

// start creates the pods of Jobs that have a place or look for one by affinity.
func (h *history) start(s *set, g *group) {
	for _, j := range g.jobs {
		if j.created || j.done || j.assignment == nil && !j.affinity {
			continue
		}
		j.created = true
		for range g.pods {
			p := &pod{job: j, cpu: s.cpu, priority: s.priority, never: s.never, since: h.now}
			j.pods = append(j.pods, p)
			h.pods = append(h.pods, p)
		}
	}
}

// adopt reads the domain of a Job without one from the node of its first pod.
func (h *history) adopt(j *job) {
	if !j.affinity || j.assignment != nil {
		return
	}
	for _, p := range j.pods {
		if p.node != nil {
			j.assignment = &placement.Assignment{
				Set: placement.NameOf(j.set.name), Group: placement.NameOf(h.groupOf(j).name), Job: placement.NameOf(j.key),
				Topology: placement.NameOf(j.set.topology), Domain: placement.NameOf(p.node.domain(j.set.topology)), Priority: j.set.priority,
			}
			return
		}
	}
}

// pending is what is known about a Job some of whose pods have no node.
func (h *history) pending(j *job) placement.Pending {
	out := placement.Pending{Ready: j.wasReady, Moves: j.moves, Moved: at(j.moved)}
	for _, p := range j.pods {
		if p.node == nil && (out.Since.IsZero() || at(p.since).Before(out.Since)) {
			out.Since = at(p.since)
		}
		out.Nominated = out.Nominated || p.nominated != nil
	}
	for _, n := range h.nodes {
		if t := at(n.since); !n.down && n.domain(j.set.topology) == j.assignment.Domain.String() && t.After(out.NodesGained) {
			out.NodesGained = t
		}
	}
	return out
}

// move places a Job again whose pods do not get nodes.
func (h *history) move(j *job) {
	if j.assignment == nil || j.affinity || !j.created || j.done {
		return
	}
	pending := h.pending(j)
	if !h.mutant.move(pending, at(h.now)).Due {
		return
	}
	h.checkMove(pending)
	r := h.request(j.set, func(other *job) bool { return other == j }, j.assignment.Domain.String())
	result := h.mutant.place(h.cluster(), h.present(), []placement.Request{r}, h.full)[0]
	if result.Outcome != placement.Placed && !(h.mutant.anywhere && result.Action == placement.Assign) || result.Assignments[0].Domain == j.assignment.Domain {
		return
	}
	h.checkMoved(j, result.Assignments[0].Domain.String())
	h.deletePods(j)
	j.assignment, j.created, j.moves, j.moved = &result.Assignments[0], false, j.moves+1, h.now
	h.placed++
	j.placed = h.placed
	h.checkPresent()
}

// deletePods deletes the pods of a Job. Those that run terminate.
func (h *history) deletePods(j *job) {
	h.remove(func(p *pod) bool { return p.job == j && p.node == nil })
	for _, p := range j.pods {
		p.terminating = true
	}
	j.pods = nil
}

// restart has all Jobs of a set start again.
func (h *history) restart(s *set) {
	for _, j := range s.jobs() {
		h.deletePods(j)
		if j.assignment != nil {
			j.previous = j.assignment
		}
		if j.done {
			j.assignment = nil // a Job that is complete holds nothing
		}
		j.created, j.done, j.affinity, j.wasReady, j.moves, j.moved = false, false, false, false, 0, 0
	}
	s.active = false
}
