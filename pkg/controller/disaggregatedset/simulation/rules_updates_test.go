// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
)

// decided checks a decision.
func (r *rules) decided(o plan.Observed, p plan.Plan) {
	r.besideScalers(o, p)
	for _, slice := range p.Slices {
		removed := slice.Slice >= helper.Slices(o.Set)
		for _, d := range slice.DeleteChildren {
			if c := find(o, d.Name); c.Replicas > 0 && !removed {
				r.Fail(ruleRuns, "%s is deleted with %d groups: %s", d.Name, c.Replicas, d.Reason)
			}
		}
		r.beside(o, slice)
		r.besideFormer(o, slice)
		if !removed {
			v := &view{rules: r, o: o, p: slice, revision: p.Revision}
			v.check()
		}
	}
}

func find(o plan.Observed, name string) plan.Child {
	i := slices.IndexFunc(o.Children, func(c plan.Child) bool { return c.Name == name && !c.Deleting })
	if i < 0 {
		return plan.Child{}
	}
	return o.Children[i]
}

// view is a slice before and after what is planned for it.
type view struct {
	*rules
	o        plan.Observed
	p        plan.SlicePlan
	revision string
}

// counts are the groups of a role.
type counts struct {
	name               string
	old, initial, now  int64
	oldNext, nowNext   int64
	target             int64
	decided, exists    bool
	surge, unavailable int64
}

// children are the children of the slice.
func (v *view) children() (list []plan.Child) {
	for _, c := range v.o.Children {
		if c.Slice == v.p.Slice && !c.Deleting {
			list = append(list, c)
		}
	}
	return list
}

func (v *view) check() {
	rolls := false
	for _, c := range v.children() {
		rolls = rolls || c.Revision != v.revision && c.Replicas > 0
	}
	var all []counts
	for i := range v.o.Set.Spec.Roles {
		c := v.count(&v.o.Set.Spec.Roles[i])
		v.checkRole(c, rolls)
		all = append(all, c)
	}
	if rolls {
		v.checkStep(all)
	}
	v.checkServices()
}

// count counts the groups of a role before and after.
func (v *view) count(role *disaggregatedsetv1.DisaggregatedRoleSpec) counts {
	n := counts{name: role.Name}
	n.surge, n.unavailable = limits(role)
	for _, c := range v.children() {
		if c.Role != role.Name {
			continue
		}
		next := int64(c.Replicas)
		for _, s := range v.p.Scale {
			if s.Name == c.Name {
				next = int64(s.To)
			}
		}
		if c.Revision == v.revision {
			n.now, n.nowNext, n.exists = int64(c.Replicas), next, true
			continue
		}
		n.old, n.oldNext, n.initial = n.old+int64(c.Replicas), n.oldNext+next, n.initial+ptr.Deref(c.Initial, int64(c.Replicas))
	}
	for _, c := range v.p.Create {
		if c.Role.Name == role.Name {
			n.nowNext = int64(c.Replicas)
		}
	}
	n.target, n.decided = desired(v.o, role)
	switch {
	case !n.decided:
		n.target = max(n.initial, n.now)
	case helper.External(role):
		n.target = max(n.target, n.now)
	}
	return n
}

// checkRole checks the groups of one role.
func (v *view) checkRole(c counts, rolls bool) {
	before, after := c.old+c.now, c.oldNext+c.nowNext
	if !rolls {
		wanted, decided := c.target, c.decided
		for i := range v.o.Set.Spec.Roles {
			if role := &v.o.Set.Spec.Roles[i]; role.Name == c.name {
				wanted, decided = desired(v.o, role)
			}
		}
		if after < before && (!decided || after < wanted) {
			v.Fail(ruleRuns, "role %s of slice %d goes from %d groups to %d, and %d are wanted: %t", c.name, v.p.Slice, before, after, wanted, decided)
		}
		return
	}
	if v.meddled {
		return
	}
	switch {
	case after > before && after > c.target+max(c.surge, 1):
		v.Fail(ruleSurge, "role %s of slice %d goes from %d groups to %d of %d+%d", c.name, v.p.Slice, before, after, c.target, c.surge)
	case c.nowNext < c.now:
		v.Fail(ruleRuns, "role %s of slice %d goes from %d new groups to %d", c.name, v.p.Slice, c.now, c.nowNext)
	case c.initial >= c.target && after < before && after < c.target-c.unavailable:
		v.Fail(ruleAvailable, "role %s of slice %d goes from %d groups to %d of %d-%d", c.name, v.p.Slice, before, after, c.target, c.unavailable)
	}
}

// checkStep checks a step of all roles together.
func (v *view) checkStep(all []counts) {
	grows, decided := false, true
	steps := v.largestRemoved(all)
	for _, c := range all {
		grows, decided = grows || c.exists && c.nowNext > c.now, decided && c.decided
		batch := c.surge
		if batch <= 0 {
			batch = max(1, c.unavailable)
		}
		steps = max(steps, (max(c.initial, c.target)+batch-1)/batch)
	}
	if !grows {
		return
	}
	v.Seen["steps of updates"]++
	for _, c := range v.children() {
		if c.Revision == v.revision && c.Ready != c.Replicas {
			v.Fail(ruleStep, "%s has %d of %d groups ready", c.Name, c.Ready, c.Replicas)
		}
	}
	slowest := steps
	for _, c := range all {
		if c.target > 0 {
			slowest = min(slowest, c.now*steps/c.target)
		}
	}
	for _, c := range all {
		if most := (min(steps, slowest+1)*c.target + steps - 1) / steps; decided && !v.meddled && c.nowNext > c.now && c.nowNext > most {
			v.Fail(ruleInStep, "role %s of slice %d goes from %d new groups to %d, and %d are in step", c.name, v.p.Slice, c.now, c.nowNext, most)
		}
	}
}

// largestRemoved returns how many groups a role had that the set has no more. They are replaced one by one.
func (v *view) largestRemoved(all []counts) (most int64) {
	removed := map[string]int64{}
	for _, c := range v.children() {
		if c.Revision != v.revision && !slices.ContainsFunc(all, func(n counts) bool { return n.name == c.Role }) {
			removed[c.Role] += ptr.Deref(c.Initial, int64(c.Replicas))
			most = max(most, removed[c.Role])
		}
	}
	return most
}

// checkServices checks that a revision that clients find through its Services keeps them, unless clients find another revision.
func (v *view) checkServices() {
	before := map[string]bool{}
	for _, s := range v.o.Services {
		before[s.Name] = !s.Deleting
	}
	after := map[string]bool{}
	for name, is := range before {
		after[name] = is
	}
	for _, s := range v.p.DeleteServices {
		delete(after, s.Name)
	}
	for _, s := range v.p.CreateServices {
		after[s.Name] = true
	}
	was, is := v.found(before), v.found(after)
	if was != "" && is == "" {
		v.Fail(ruleServices, "revision %s of slice %d loses its Services", was, v.p.Slice)
	}
}

// found returns a revision that serves and that has all Services; empty if there is none.
func (v *view) found(services map[string]bool) string {
	for _, revision := range servingRevisions(v.o, v.children(), v.revision) {
		complete := true
		for _, c := range v.children() {
			complete = complete && (c.Revision != revision || c.Replicas == 0 || services[helper.ServiceName(c.Name)])
		}
		if complete {
			return revision
		}
	}
	return ""
}

// servingRevisions returns the revisions of which each role has a group that is ready and that stays, unless the role is at 0.
func servingRevisions(o plan.Observed, children []plan.Child, current string) (list []string) {
	for _, c := range children {
		if slices.Contains(list, c.Revision) {
			continue
		}
		serves, ready := true, int32(0)
		for _, other := range children {
			if other.Revision == c.Revision {
				ready += other.Ready
				serves = serves && (other.Ready > 0 && other.Replicas > 0 || other.Replicas == 0 && ptr.Deref(other.Initial, 0) == 0)
			}
		}
		if serves && ready > 0 && (c.Revision != current || allRoles(o, children, current)) {
			list = append(list, c.Revision)
		}
	}
	return list
}

// allRoles returns whether each role that is to have groups has one of the revision that is ready.
func allRoles(o plan.Observed, children []plan.Child, revision string) bool {
	for i := range o.Set.Spec.Roles {
		role := &o.Set.Spec.Roles[i]
		want, decided := desired(o, role)
		ready := slices.ContainsFunc(children, func(c plan.Child) bool { return c.Revision == revision && c.Role == role.Name && c.Ready > 0 })
		if (want > 0 || !decided) && !ready {
			return false
		}
	}
	return true
}
