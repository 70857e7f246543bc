// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
)

// planServices creates the Services of the current revision once it serves, and until then those of the newest former
// revision that serves. The Services of a former revision are deleted when the current one serves, or is to have no
// groups, and the former one cannot serve again.
func (s *slice) planServices(p *SlicePlan, current map[string]Child, old []former) {
	asked := s.asked(current, old)
	serving := s.serves(current, asked)
	if serving {
		s.publish(p, current)
	}
	lasting := map[string]bool{s.revision: true}
	for i := range old {
		lasting[old[i].revision] = old[i].lasts()
	}
	if i := slices.IndexFunc(old, former.serves); !serving && i >= 0 {
		s.publish(p, old[i].children)
	}
	for _, service := range s.services {
		if (serving || len(asked) == 0) && !lasting[service.Revision] {
			p.DeleteServices = append(p.DeleteServices, service.Ref)
		}
	}
}

// publish creates the Services of LeaderWorkerSets that have none.
func (s *slice) publish(p *SlicePlan, children map[string]Child) {
	order := func(role string) int {
		return slices.IndexFunc(s.roles, func(r roleState) bool { return r.Name == role })
	}
	for _, role := range slices.SortedFunc(maps.Keys(children),
		func(a, b string) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b)) }) {
		name := helper.ServiceName(children[role].Name)
		if !slices.ContainsFunc(s.services, func(service Service) bool { return service.Name == name }) &&
			!s.obs.orphanedName(OrphanService, name) {
			p.CreateServices = append(p.CreateServices, newService(s.obs.Set, children[role]))
		}
	}
}

// asked returns the roles that should have groups. A role without a size in the set and without a scaler should have
// groups if it has some, or had when the rollout began.
func (s *slice) asked(current map[string]Child, old []former) []string {
	var asked []string
	for _, role := range s.roles {
		desired, decided := role.desired()
		if !decided {
			desired = int64(current[role.Name].Replicas)
			for i := range old {
				c := old[i].children[role.Name]
				desired += int64(c.Replicas) + ptr.Deref(c.Initial, 0)
			}
		}
		if desired > 0 {
			asked = append(asked, role.Name)
		}
	}
	return asked
}

// serves returns whether each role that is to have groups has one of the current revision that is ready.
func (s *slice) serves(current map[string]Child, asked []string) bool {
	for _, role := range asked {
		if current[role].Ready == 0 {
			return false
		}
	}
	return len(asked) > 0
}

// serves returns whether each role that has groups of the revision, or had some when the rollout began, has one that is ready.
func (f former) serves() bool {
	return f.all(func(c Child) bool { return c.Ready > 0 })
}

// lasts returns whether the revision may serve again, although it may not at present: no role has lost all groups that
// it had when the rollout began.
func (f former) lasts() bool {
	return f.all(func(c Child) bool { return c.Replicas > 0 })
}

func (f former) all(holds func(Child) bool) bool {
	for _, c := range f.children {
		if (c.Replicas > 0 || ptr.Deref(c.Initial, 0) > 0) && !holds(c) {
			return false
		}
	}
	return f.groups > 0
}
