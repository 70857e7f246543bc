// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	groupshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

// Roles is a DisaggregatedSet with its LeaderWorkerSets, as read at one time.
type Roles struct {
	Set *disaggregatedsetv1.DisaggregatedSet
	// Revision is the current one; "" if it is not known.
	Revision string
	// Sets are the LeaderWorkerSets that the set controls: those of the current revision first, then by slice, and by role
	// in the order of the spec.
	Sets []RoleSet
}

// RoleSet is the LeaderWorkerSet of a role, with what its labels say. A set of an early version has no slice, and belongs to slice 0.
type RoleSet struct {
	*leaderworkersetv1.LeaderWorkerSet
	Role, Revision string
	Slice          int
}

// AssembleRoles keeps the LeaderWorkerSets that the set controls, and sorts them.
func AssembleRoles(set *disaggregatedsetv1.DisaggregatedSet, all []leaderworkersetv1.LeaderWorkerSet) *Roles {
	r := &Roles{Set: set}
	r.Revision, _ = helper.Revision(set)
	for i := range all {
		lws := &all[i]
		if metav1.IsControlledBy(lws, set) {
			r.Sets = append(r.Sets, RoleSet{
				lws, lws.Labels[disaggregatedsetv1.RoleLabelKey], lws.Labels[disaggregatedsetv1.RevisionLabelKey],
				max(0, number(lws.Labels[disaggregatedsetv1.SliceLabelKey])),
			})
		}
	}
	former := func(s RoleSet) int {
		if r.Current(s) {
			return 0
		}
		return 1
	}
	slices.SortFunc(r.Sets, func(a, b RoleSet) int {
		return cmp.Or(former(a)-former(b), cmp.Compare(a.Slice, b.Slice), cmp.Compare(r.place(a.Role), r.place(b.Role)),
			cmp.Compare(a.Name, b.Name))
	})
	return r
}

// place is the place of a role in the spec. One that was removed comes last.
func (r *Roles) place(role string) int {
	at := slices.IndexFunc(r.Set.Spec.Roles, func(s disaggregatedsetv1.DisaggregatedRoleSpec) bool { return s.Name == role })
	if at < 0 {
		return len(r.Set.Spec.Roles)
	}
	return at
}

// Current returns whether a LeaderWorkerSet is of the current revision, and of a slice and role that should be.
func (r *Roles) Current(s RoleSet) bool {
	return s.Revision == r.Revision && s.Slice < int(helper.Slices(r.Set)) && r.place(s.Role) < len(r.Set.Spec.Roles)
}

// Find returns the LeaderWorkerSet of the current revision for a role in a slice; false if there is none.
func (r *Roles) Find(slice int, role string) (RoleSet, bool) {
	at := slices.IndexFunc(r.Sets, func(s RoleSet) bool { return r.Current(s) && s.Slice == slice && s.Role == role })
	if at < 0 {
		return RoleSet{}, false
	}
	return r.Sets[at], true
}

// Groups is the number of groups that the LeaderWorkerSet should have.
func (s RoleSet) Groups() int { return int(groupshelper.Replicas(s.LeaderWorkerSet)) }

// Ready returns whether all groups are ready, and none has failed for good.
func (s RoleSet) Ready() bool {
	return int(s.Status.ReadyReplicas) >= s.Groups() && !meta.IsStatusConditionTrue(s.Status.Conditions, leaderworkersetv1.ConditionFailed)
}

// RoleCounts are the numbers of the roles of a DisaggregatedSet over all slices and revisions.
type RoleCounts struct {
	// RolesReady is the number of roles with all of their groups ready and updated, of RoleCount.
	RolesReady int `json:"rolesReady"`
	RoleCount  int `json:"roleCount"`
	// Roles are the roles in the order of the spec.
	Roles []RoleCount `json:"roles"`
}

// RoleCount are the numbers of one role.
type RoleCount struct {
	Name string `json:"name"`
	// GroupsReady and GroupsUpdated are the numbers of groups that are ready, and of those of the current revision, of GroupsWanted.
	GroupsReady   int `json:"groupsReady"`
	GroupsUpdated int `json:"groupsUpdated"`
	GroupsWanted  int `json:"groupsWanted"`
}

// ReadyOf are the roles that are ready, of all, like "1/2".
func (c RoleCounts) ReadyOf() string { return fmt.Sprintf("%d/%d", c.RolesReady, c.RoleCount) }

// RolesSummary is the state of a DisaggregatedSet with its numbers.
type RolesSummary struct {
	Phase
	RoleCounts
	GroupCounts
}

// SummarizeRoles returns the state of a DisaggregatedSet. A role that a scaler scales should have as many groups as its
// status says that it has.
func SummarizeRoles(set *disaggregatedsetv1.DisaggregatedSet) RolesSummary {
	s := RolesSummary{Phase: phaseOfRoles(set)}
	s.RoleCount, s.Roles = len(set.Spec.Roles), []RoleCount{}
	for i := range set.Spec.Roles {
		role := &set.Spec.Roles[i]
		count := RoleCount{Name: role.Name}
		at := slices.IndexFunc(set.Status.RoleStatuses, func(status disaggregatedsetv1.RoleStatus) bool { return status.Name == role.Name })
		if at >= 0 {
			status := &set.Status.RoleStatuses[at]
			count.GroupsReady, count.GroupsUpdated, count.GroupsWanted = int(status.ReadyReplicas), int(status.UpdatedReplicas), int(status.Replicas)
		}
		if !helper.External(role) {
			count.GroupsWanted = int(max(0, ptr.Deref(role.Spec.Replicas, 1))) * int(helper.Slices(set))
		}
		if at >= 0 && count.GroupsReady >= count.GroupsWanted && count.GroupsUpdated >= count.GroupsWanted {
			s.RolesReady++
		}
		s.Roles = append(s.Roles, count)
		s.GroupsReady, s.GroupsUpdated, s.GroupsWanted = s.GroupsReady+count.GroupsReady, s.GroupsUpdated+count.GroupsUpdated,
			s.GroupsWanted+count.GroupsWanted
	}
	return s
}

func phaseOfRoles(set *disaggregatedsetv1.DisaggregatedSet) Phase {
	if set.DeletionTimestamp != nil {
		return Phase{State: groupshelper.PhaseTerminating}
	}
	for _, known := range []struct{ condition, state string }{
		{namespaceuid.Condition, groupshelper.PhasePending},
		{disaggregatedsetv1.ConditionAvailable, groupshelper.PhaseAvailable},
		{disaggregatedsetv1.ConditionProgressing, groupshelper.PhaseProgressing},
	} {
		if c := meta.FindStatusCondition(set.Status.Conditions, known.condition); c != nil && c.Status == metav1.ConditionTrue {
			return Phase{State: known.state, Reason: c.Reason, Message: cli.Clean(c.Message)}
		}
	}
	return Phase{State: groupshelper.PhasePending}
}
