// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// former is a former revision that has groups.
type former struct {
	revision string
	children map[string]Child
	groups   int64
	created  metav1.Time
}

func (f *former) add(c Child) {
	f.children[c.Role] = c
	f.groups += int64(c.Replicas)
	if f.created.Before(&c.Created) {
		f.created = c.Created
	}
}

// roll plans the next writes of a slice that has groups of former revisions. First all children of these carry how many
// groups they had, then the current revision has a child for each role, without groups; then one step follows the
// other. A step waits until all groups of the current revision are ready.
func (s *slice) roll(p *SlicePlan, current map[string]Child, old []former) {
	if s.prepare(p, current, old); len(p.Annotate) > 0 {
		return
	}
	for _, role := range s.roles {
		if _, found := current[role.Name]; !found {
			p.Create = append(p.Create, s.creation(role, 0))
		}
	}
	if len(p.Create) > 0 {
		p.Starts = len(current) == 0
		return
	}
	for _, child := range current {
		if child.Ready != child.Replicas {
			return
		}
	}
	s.step(p, current, old)
}

// step takes the next step.
func (s *slice) step(p *SlicePlan, current map[string]Child, old []former) {
	names, before := s.vectors(current, old)
	after, more := Next(before)
	if !more {
		return
	}
	if all(after, func(r Rollout) bool { return r.Old == 0 }) {
		// If neither the set nor a scaler gives the size of a role, only the groups of former revisions show how large it has to be.
		for i, role := range s.roles {
			if _, decided := role.desired(); !decided {
				after[i].New = after[i].Target
			}
		}
	}
	for i, name := range names {
		if child, found := current[name]; found && after[i].New != int64(child.Replicas) {
			p.scale(child, after[i].New)
		}
	}
	for revision, groups := range distribute(names, old, before, after) {
		for i, name := range names {
			if child, found := old[revision].children[name]; found && groups[i] != int64(child.Replicas) {
				p.scale(child, groups[i])
			}
		}
	}
	p.sortScale()
}

// prepare notes on each child of a former revision how many groups it has, when the rollout begins. A child of the
// current revision that has such a note, because a user went back to its revision, loses it.
func (s *slice) prepare(p *SlicePlan, current map[string]Child, old []former) {
	for _, role := range s.roles {
		if child, found := current[role.Name]; found && child.Initial != nil {
			p.annotate(child, nil)
		}
	}
	for _, c := range s.children {
		for i := range old {
			if c.Revision != old[i].revision {
				continue
			}
			if c.Initial == nil || len(current) == 0 && *c.Initial != int64(c.Replicas) {
				p.annotate(c, ptr.To(int64(c.Replicas)))
			}
		}
	}
}

// vectors returns the names of all roles, removed ones last, and what they have.
func (s *slice) vectors(current map[string]Child, old []former) (names []string, all []Rollout) {
	index := map[string]int{}
	add := func(name string) *Rollout {
		if i, found := index[name]; found {
			return &all[i]
		}
		index[name] = len(names)
		names, all = append(names, name), append(all, Rollout{Surge: 1})
		return &all[len(all)-1]
	}
	for _, role := range s.roles {
		add(role.Name)
	}
	for _, c := range s.children { // sorted
		if c.Revision == s.revision {
			continue
		}
		r := add(c.Role)
		r.Old += int64(c.Replicas)
		r.Initial += ptr.Deref(c.Initial, int64(c.Replicas))
	}
	for i, role := range s.roles {
		r := &all[i]
		r.New = int64(current[role.Name].Replicas)
		r.Target = s.target(role, r)
		r.Surge, r.Unavailable = limits(role.Spec.RolloutStrategy.RollingUpdateConfiguration, r.Target)
	}
	for name, child := range current { // a role that was removed and whose revision is the same cannot be: its name counts
		if _, found := index[name]; !found {
			add(name).New = int64(child.Replicas)
		}
	}
	return names, all
}

// target returns how many groups of the current revision a role should have in the end. What autoscalers take away
// during a rollout has to wait until its end, because new groups only ever come.
func (s *slice) target(role roleState, r *Rollout) int64 {
	desired, decided := role.desired()
	switch {
	case !decided:
		desired = max(r.Initial, r.New)
	case role.external:
		desired = max(desired, r.New)
	}
	return min(desired, leaderworkersetv1.MaxReplicas)
}

// limits returns by how many groups a role may exceed and fall below its target.
func limits(c *leaderworkersetv1.RollingUpdateConfiguration, target int64) (surge, unavailable int64) {
	if c == nil {
		return 1, 0
	}
	surge, unavailable = scaled(c.MaxSurge, target, true), scaled(c.MaxUnavailable, target, false)
	switch {
	case unavailable > 0:
		return surge, unavailable
	case surge > 0:
		return surge, 0
	}
	return 1, 0
}

func scaled(value *intstr.IntOrString, total int64, up bool) int64 {
	if value == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(total), up)
	if err != nil {
		return 0
	}
	return int64(min(max(n, 0), leaderworkersetv1.MaxReplicas))
}
