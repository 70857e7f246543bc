// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
)

// Rules, by the names under which they are broken. Those of simulation.RuleOthers, RulePasses and RuleRefusals come on top.
const (
	ruleOnce       = "no role of a slice has two LeaderWorkerSets of one revision"
	ruleRuns       = "what runs is stopped only if the user, an autoscaler or an update asks for it"
	ruleSurge      = "a role has no more groups than its surge allows"
	ruleAvailable  = "an update leaves a role as many groups as must be available"
	ruleStep       = "a step waits until the groups of the step before are ready"
	ruleInStep     = "no role is more than one step ahead of the slowest one"
	ruleServices   = "Services select a revision that serves, if there is one"
	ruleSeed       = "a scaler begins with a size that somebody wanted for the role"
	ruleVisible    = "a refusal is reported by the pass that meets it"
	ruleStored     = "what a pass has found out is stored although its time is over"
	ruleStatus     = "a status says only what holds"
	ruleConditions = "the time of a condition moves with its status only"
)

// rules know what was wanted of a set, and check every decision about it and every write.
type rules struct {
	*env
	// sizes are all sizes that a user or an autoscaler ever set for a role, by slice.
	sizes map[string]map[int32]bool
}

func newRules(e *env) *rules { return &rules{env: e, sizes: map[string]map[int32]bool{}} }

// decidedSizes notes the sizes that a user wants.
func (r *rules) decidedSizes(ds disaggregatedSet) {
	for i := range ds.Spec.Roles {
		if role := &ds.Spec.Roles[i]; !helper.External(role) {
			r.decidedSize(role.Name, ptr.Deref(role.Spec.Replicas, 1))
		}
	}
}

func (r *rules) decidedSize(role string, n int32) {
	if r.sizes[role] == nil {
		r.sizes[role] = map[int32]bool{1: true} // the size of a role that has none in the set and no scaler
	}
	r.sizes[role][n] = true
}

// childCreated checks a new LeaderWorkerSet.
func (r *rules) childCreated(lws leaderWorkerSet) {
	r.Seen["children created"]++
	of := plan.ChildOf(lws)
	if want := helper.SetName(name, of.Slice, of.Revision, of.Role); lws.Name != want {
		r.Fail(ruleOnce, "%s is not called %s", lws.Name, want)
	}
	for _, other := range r.env.children.Objects {
		o := plan.ChildOf(other)
		if other.UID != lws.UID && metav1.IsControlledBy(other, &metav1.ObjectMeta{UID: metav1.GetControllerOf(lws).UID}) && o.Role == of.Role && o.Slice == of.Slice && o.Revision == of.Revision {
			r.Fail(ruleOnce, "%s and %s", lws.Name, other.Name)
		}
	}
	r.decidedSize(of.Role, r.groupsBeside(lws)) // more than one revision only has groups at once if a request comes late
}

// groupsBeside returns the groups of a LeaderWorkerSet with those of the same role and slice.
func (r *rules) groupsBeside(lws leaderWorkerSet) int32 {
	of := plan.ChildOf(lws)
	groups := of.Replicas
	for _, other := range r.env.children.Objects {
		if o := plan.ChildOf(other); other.UID != lws.UID && o.Role == of.Role && o.Slice == of.Slice && of.Replicas > 0 {
			groups += o.Replicas
		}
	}
	return groups
}

// maxSurge is the largest surge that a role has.
const maxSurge = 2

// scalerCreated checks with how many groups a scaler begins.
func (r *rules) scalerCreated(s roleScaler) {
	r.Seen["scalers created"]++
	role := s.Labels[disaggregatedsetv1.RoleLabelKey]
	most := int32(1)
	for n := range r.sizes[role] {
		most = max(most, n)
	}
	most += maxSurge // an update that begins during another one finds its surge, too
	if s.Spec.Replicas > most && !r.meddled {
		r.Fail(ruleSeed, "%s begins with %d groups, and nobody wanted more than %d", s.Name, s.Spec.Replicas, most)
	}
}

// statusStored checks a status right before it is stored.
func (r *rules) statusStored(before, after disaggregatedSet) {
	was, is := &before.Status, &after.Status
	if is.ObservedGeneration < was.ObservedGeneration || is.ObservedGeneration > before.Generation {
		r.Fail(ruleStatus, "the observed generation goes from %d to %d of %d", was.ObservedGeneration, is.ObservedGeneration, before.Generation)
	}
	for _, c := range is.Conditions {
		old := meta.FindStatusCondition(was.Conditions, c.Type)
		if old != nil && old.Status == c.Status && !old.LastTransitionTime.Equal(&c.LastTransitionTime) {
			r.Fail(ruleConditions, "the time of %s moves", c.Type)
		}
	}
}

// finished checks a status against what it was made of.
func (r *rules) finished(o plan.Observed, out plan.Outcome) {
	if out.Status == nil {
		return
	}
	if out.Status.ObservedGeneration != o.Set.Generation {
		r.Fail(ruleStatus, "generation %d was observed, and the status says %d", o.Set.Generation, out.Status.ObservedGeneration)
	}
	r.checkStatus(o, out.Status)
}

// checkStatus checks what a status says about the children of a set.
func (r *rules) checkStatus(o plan.Observed, s *disaggregatedsetv1.DisaggregatedSetStatus) {
	revision, err := helper.Revision(o.Set)
	if err != nil {
		panic(err)
	}
	if len(o.Unreadable) > 0 {
		return // the counts are not known
	}
	complete := true
	for i := range o.Set.Spec.Roles {
		role := &o.Set.Spec.Roles[i]
		want, decided := desired(o, role)
		want *= int64(helper.Slices(o.Set))
		var count disaggregatedsetv1.RoleStatus
		var current int32
		for _, c := range o.Children {
			if c.Role == role.Name {
				count.Replicas, count.ReadyReplicas = count.Replicas+c.Current, count.ReadyReplicas+c.Ready
				if c.Revision == revision {
					count.UpdatedReplicas, current = count.UpdatedReplicas+c.Updated, current+c.Ready
				}
			}
		}
		if count.Name = role.Name; i >= len(s.RoleStatuses) || s.RoleStatuses[i] != count {
			r.Fail(ruleStatus, "role %s has %+v, and the status says %+v", role.Name, count, s.RoleStatuses)
		}
		complete = complete && decided && int64(count.Replicas) == want && int64(current) == want
	}
	available, progressing := meta.IsStatusConditionTrue(s.Conditions, disaggregatedsetv1.ConditionAvailable), meta.IsStatusConditionTrue(s.Conditions, disaggregatedsetv1.ConditionProgressing)
	if available != complete || progressing == available {
		r.Fail(ruleStatus, "all groups are ready: %t, and the set is Available: %t, Progressing: %t", complete, available, progressing)
	}
}

// desired returns how many groups a role should have in a slice; false if neither the set nor a scaler says so.
func desired(o plan.Observed, role *disaggregatedsetv1.DisaggregatedRoleSpec) (int64, bool) {
	if !helper.External(role) {
		return int64(ptr.Deref(role.Spec.Replicas, 1)), true
	}
	for _, s := range o.Scalers {
		if s.Name == helper.ScalerName(name, role.Name) && s.DeletionTimestamp == nil {
			return int64(s.Spec.Replicas), true
		}
	}
	return 0, false
}

// limits returns by how many groups a role may exceed and fall below its size.
func limits(role *disaggregatedsetv1.DisaggregatedRoleSpec) (surge, unavailable int64) {
	if c := role.Spec.RolloutStrategy.RollingUpdateConfiguration; c != nil {
		return int64(c.MaxSurge.IntValue()), int64(c.MaxUnavailable.IntValue())
	}
	return 1, 0
}

// ended checks how a pass has ended: writes is the error of its writes of children, and all that of the pass.
func (r *rules) ended(writes, all error) {
	p := r.process
	for taken := range p.observed.TakenScalers {
		if p.conflict = p.conflict || p.warned; !p.conflict && !p.sender.Dead && !p.sender.Deposed && r.set() != nil && p.observed.Set.DeletionTimestamp == nil {
			r.Fail(ruleVisible, "no event reports that another object has the name of the scaler %s", taken)
		}
	}
	if errors.Is(all, context.Canceled) {
		r.Fail(ruleStored, "%v", all)
	}
	if p.sender.Dead || p.sender.Deposed || r.set() == nil || !refusal(writes) {
		return
	}
	r.Seen["passes with refusals"]++
	if !p.warned {
		r.Fail(ruleVisible, "no event reports the refused writes %v", writes)
	}
}
