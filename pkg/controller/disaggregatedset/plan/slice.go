// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// plan plans the next writes of a slice that should be.
func (s *slice) plan() SlicePlan {
	p := SlicePlan{Slice: s.index}
	if s.migrate(&p) {
		return p
	}
	current, old, drained := s.split()
	for _, c := range drained {
		p.DeleteChildren = append(p.DeleteChildren, Deletion{Ref: c.Ref, Reason: Drained})
	}
	p.Completes = len(drained) > 0 && len(old) == 0 && len(current) > 0
	s.planServices(&p, current, old)
	switch {
	case s.blocked():
		// The name of a child is taken by one that is being deleted. The slice goes on when it is gone.
	case len(old) > 0:
		s.roll(&p, current, old)
	default:
		s.scaleCurrent(&p, current)
	}
	return p
}

// migrate deletes the children of the current revision that have no slice, with their Services first, if there are
// several slices or if the same children exist with a slice. They are created again with a slice.
func (s *slice) migrate(p *SlicePlan) bool {
	for _, c := range s.children {
		if !c.Legacy || c.Revision != s.revision {
			continue
		}
		twin := slices.ContainsFunc(s.children, func(o Child) bool { return !o.Legacy && o.Revision == c.Revision && o.Role == c.Role })
		if helper.Slices(s.obs.Set) == 1 && !twin {
			continue
		}
		for _, service := range s.services {
			if service.Name == helper.ServiceName(c.Name) {
				p.DeleteServices = append(p.DeleteServices, service.Ref)
			}
		}
		p.DeleteChildren = append(p.DeleteChildren, Deletion{Ref: c.Ref, Reason: Migrated})
	}
	return len(p.DeleteChildren) > 0
}

// split returns the children of the current revision by role, those of the former revisions that have groups, the
// newest revision first, and those of former revisions without groups.
func (s *slice) split() (current map[string]Child, old []former, drained []Child) {
	current = map[string]Child{}
	revisions := map[string]*former{}
	for _, c := range s.children {
		if c.Revision == s.revision {
			current[c.Role] = c
			continue
		}
		if revisions[c.Revision] == nil {
			revisions[c.Revision] = &former{revision: c.Revision, children: map[string]Child{}}
		}
		revisions[c.Revision].add(c)
	}
	for _, c := range s.children {
		if r := revisions[c.Revision]; r != nil && r.groups == 0 {
			drained = append(drained, c)
		}
	}
	for _, r := range revisions {
		if r.groups > 0 {
			old = append(old, *r)
		}
	}
	slices.SortFunc(old, func(a, b former) int {
		return cmp.Or(b.created.Compare(a.created.Time), cmp.Compare(a.revision, b.revision))
	})
	return current, old, drained
}

// size returns how many groups a role has in the slice; false if it has no LeaderWorkerSet. While one revision takes
// the place of others, that is what these had when the rollout began, or what the new one has if that is more.
func (s *slice) size(role string) (groups int64, found bool) {
	current, old, drained := s.split()
	if c, has := current[role]; has {
		groups, found = max(int64(c.Replicas), ptr.Deref(c.Initial, 0)), true
	}
	before := int64(0)
	for i := range old {
		if c, has := old[i].children[role]; has {
			found = true
			if before += int64(c.Replicas); len(current) > 0 {
				before += ptr.Deref(c.Initial, int64(c.Replicas)) - int64(c.Replicas)
			}
		}
	}
	found = found || slices.ContainsFunc(drained, func(c Child) bool { return c.Role == role })
	if c, going := s.deleting[helper.SetName(s.obs.Set.Name, s.index, s.revision, role)]; going && !found {
		return int64(c.Replicas), true
	}
	return max(groups, before), found
}

// blocked returns whether a child that is being deleted still has a name that the slice needs.
func (s *slice) blocked() bool {
	return slices.ContainsFunc(s.roles, func(r roleState) bool {
		_, taken := s.deleting[helper.SetName(s.obs.Set.Name, s.index, s.revision, r.Name)]
		return taken
	})
}

// scaleCurrent creates what is missing and scales what is there, while there is nothing to roll.
func (s *slice) scaleCurrent(p *SlicePlan, current map[string]Child) {
	for _, role := range s.roles {
		child, found := current[role.Name]
		desired, decided := role.desired()
		switch {
		case decided:
		case !found && !s.obs.TakenScalers[helper.ScalerName(s.obs.Set.Name, role.Name)]:
			desired = role.seed // as its scaler, which is being created
		default:
			desired = int64(child.Replicas)
		}
		desired = min(desired, leaderworkersetv1.MaxReplicas)
		switch {
		case !found:
			p.Create = append(p.Create, s.creation(role, desired))
		case desired != int64(child.Replicas):
			p.scale(child, desired)
		case child.Initial != nil:
			p.annotate(child, nil)
		}
	}
	p.sortScale()
}

func (p *SlicePlan) scale(child Child, to int64) {
	p.Scale = append(p.Scale, Scaling{Ref: child.Ref, ResourceVersion: child.ResourceVersion, Role: child.Role, From: child.Replicas,
		To: int32(to)})
}

func (p *SlicePlan) annotate(child Child, initial *int64) {
	p.Annotate = append(p.Annotate, Annotation{Ref: child.Ref, ResourceVersion: child.ResourceVersion, Annotated: child.Annotated,
		Initial: initial})
}

// sortScale puts what grows first.
func (p *SlicePlan) sortScale() {
	slices.SortStableFunc(p.Scale, func(a, b Scaling) int {
		shrinks := func(s Scaling) int {
			if s.To < s.From {
				return 1
			}
			return 0
		}
		return cmp.Compare(shrinks(a), shrinks(b))
	})
}
