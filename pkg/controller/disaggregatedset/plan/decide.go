// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
)

// Decide plans the next writes.
func Decide(obs Observed) Plan {
	if obs.Set.DeletionTimestamp != nil {
		return Plan{}
	}
	revision, err := helper.Revision(obs.Set)
	if err != nil {
		return Plan{Invalid: err.Error()}
	}
	p := Plan{Revision: revision, Adopt: adoptions(obs)}
	state := bySlice(obs, revision)
	planScalers(obs, state, &p)
	planSlices(obs, state, &p)
	p.ScalerStatuses = scalerStatuses(obs, p)
	return p
}

// roleState is a role and what decides about its replicas.
type roleState struct {
	*disaggregatedsetv1.DisaggregatedRoleSpec
	external bool
	scaler   *disaggregatedsetv1.DisaggregatedSetRoleScaler
	// seed is with how many groups a scaler of the role begins.
	seed int64
}

// roles returns the roles of the set, in their order, with their scalers.
func roles(obs Observed) []roleState {
	byRole := map[string]*disaggregatedsetv1.DisaggregatedSetRoleScaler{}
	for _, s := range obs.Scalers {
		if s.DeletionTimestamp == nil {
			byRole[s.Name] = s
		}
	}
	out := make([]roleState, 0, len(obs.Set.Spec.Roles))
	for i := range obs.Set.Spec.Roles {
		role := &obs.Set.Spec.Roles[i]
		state := roleState{DisaggregatedRoleSpec: role, external: helper.External(role)}
		if state.external {
			state.scaler = byRole[helper.ScalerName(obs.Set.Name, role.Name)]
		}
		out = append(out, state)
	}
	return out
}

// desired returns how many groups a role should have in each slice; false if the role has neither a size in the set nor a scaler.
func (r roleState) desired() (int64, bool) {
	switch {
	case !r.external:
		return int64(max(0, ptr.Deref(r.Spec.Replicas, 1))), true
	case r.scaler != nil:
		return int64(max(0, r.scaler.Spec.Replicas)), true
	}
	return 0, false
}

// planScalers creates the scalers of roles that others scale, with the groups that these roles have, and deletes those
// of other roles. How many groups a role has is known once all LeaderWorkerSets are adopted.
func planScalers(obs Observed, state map[int32]*slice, p *Plan) {
	if len(obs.Unreadable) > 0 {
		return // it is not known which scalers there are, or with how many groups a new one would begin
	}
	wanted := map[string]bool{}
	for _, role := range state[0].roles {
		if !role.external {
			continue
		}
		name := helper.ScalerName(obs.Set.Name, role.Name)
		wanted[name] = true
		switch {
		case obs.TakenScalers[name]:
			p.Conflicts = append(p.Conflicts, name)
		case obs.orphanedName(OrphanScaler, name) || obs.orphaned(OrphanLeaderWorkerSet, func(Orphan) bool { return true }):
		case !slices.ContainsFunc(obs.Scalers, func(s *disaggregatedsetv1.DisaggregatedSetRoleScaler) bool { return s.Name == name }):
			p.CreateScalers = append(p.CreateScalers, newScaler(obs.Set, role.Name, role.seed))
		}
	}
	for _, s := range obs.Scalers {
		if !wanted[s.Name] && s.DeletionTimestamp == nil {
			p.DeleteScalers = append(p.DeleteScalers, Ref{Name: s.Name, UID: s.UID})
		}
	}
	slices.SortFunc(p.DeleteScalers, func(a, b Ref) int { return cmp.Compare(a.Name, b.Name) })
}

// seed returns the number of groups that a role has in the slice with most of them; 1 if the role has no
// LeaderWorkerSet. Slices that are being removed do not count, unless there are no others.
func seed(obs Observed, state map[int32]*slice, role string) int64 {
	most, of := map[bool]int64{}, map[bool]bool{}
	for index, s := range state {
		if groups, found := s.size(role); found {
			stays := index < helper.Slices(obs.Set)
			most[stays], of[stays] = max(most[stays], groups), true
		}
	}
	switch {
	case of[true]:
		return most[true]
	case of[false]:
		return most[false]
	}
	return 1
}

// planSlices plans each slice by itself.
func planSlices(obs Observed, state map[int32]*slice, p *Plan) {
	count := helper.Slices(obs.Set)
	for _, slice := range slices.Sorted(maps.Keys(state)) {
		s := state[slice]
		switch {
		case s.awaits() || s.unknown():
		case slice >= count:
			p.Slices = append(p.Slices, s.remove())
		default:
			if planned := s.plan(); !planned.empty() {
				p.Slices = append(p.Slices, planned)
			}
		}
	}
}

// Empty returns whether there is nothing to write but statuses.
func (p Plan) Empty() bool {
	return len(p.Adopt)+len(p.CreateScalers)+len(p.DeleteScalers)+len(p.Slices) == 0
}

func (p SlicePlan) empty() bool {
	return len(p.DeleteServices)+len(p.DeleteChildren)+len(p.Annotate)+len(p.Create)+len(p.Scale)+len(p.CreateServices) == 0
}

// slice is what there is of a slice.
type slice struct {
	obs      Observed
	index    int32
	revision string
	roles    []roleState
	// children are the children that are not being deleted; deleting are the others by name.
	children []Child
	deleting map[string]Child
	services []Service
}

// bySlice returns all slices that should be, or of which there is something.
func bySlice(obs Observed, revision string) map[int32]*slice {
	state := map[int32]*slice{}
	states := roles(obs)
	of := func(index int32) *slice {
		if state[index] == nil {
			state[index] = &slice{obs: obs, index: index, revision: revision, roles: states, deleting: map[string]Child{}}
		}
		return state[index]
	}
	for i := range helper.Slices(obs.Set) {
		of(i)
	}
	for _, c := range obs.Children {
		switch {
		case c.Slice < 0 || c.Revision == "" || c.Role == "":
		case c.Deleting:
			of(c.Slice).deleting[c.Name] = c
		default:
			s := of(c.Slice)
			s.children = append(s.children, c)
		}
	}
	for _, service := range obs.Services {
		if service.Slice >= 0 && !service.Deleting {
			s := of(service.Slice)
			s.services = append(s.services, service)
		}
	}
	sortAndSeed(obs, state, states)
	return state
}

// sortAndSeed sorts what slices have, and finds out with how many groups scalers begin.
func sortAndSeed(obs Observed, state map[int32]*slice, states []roleState) {
	for _, s := range state {
		slices.SortFunc(s.children, func(a, b Child) int { return cmp.Compare(a.Name, b.Name) })
		slices.SortFunc(s.services, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	}
	for i := range states { // which all slices share
		if states[i].external {
			states[i].seed = seed(obs, state, states[i].Name)
		}
	}
}

// remove deletes all of a slice that is to go.
func (s *slice) remove() SlicePlan {
	p := SlicePlan{Slice: s.index}
	for _, service := range s.services {
		p.DeleteServices = append(p.DeleteServices, service.Ref)
	}
	for _, c := range s.children {
		p.DeleteChildren = append(p.DeleteChildren, Deletion{Ref: c.Ref, Reason: SliceRemoved})
	}
	return p
}
