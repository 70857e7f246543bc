// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Summary is the state of a set, in the words that every view of it shows. It follows from the set alone.
type Summary struct {
	// Phase is the state in one word: a phase of LeaderWorkerSets.
	Phase string
	// Reason is why the set is in the phase, in one word, and Message in a sentence. Both are empty while all roles are ready and updated.
	Reason, Message string
	// Roles are the counts of the roles in the order of the spec. Ready, Updated and Wanted are their sums, and RolesReady is the number of
	// roles with all of their groups ready and updated.
	Roles                  []RoleCount
	Ready, Updated, Wanted int
	RolesReady             int
}

// RoleCount are the numbers of the groups of one role, over all slices and revisions.
type RoleCount struct {
	// Name is the name of the role.
	Name string
	// Ready and Updated groups are ready, and of the current revision, of those that are Wanted.
	Ready, Updated, Wanted int
}

// troubles are the conditions that keep a set from having all its roles while they are True, in order of precedence.
var troubles = []string{
	namespaceuid.Condition, disaggregatedsetv1.ConditionChildCreationFailure, disaggregatedsetv1.ConditionRolesBlocked,
}

// Troubles returns the conditions that keep a set from having all its roles while they are True. The first that is True is its reason.
func Troubles() []string { return slices.Clone(troubles) }

// Summarize returns the state of a set.
func Summarize(set *disaggregatedsetv1.DisaggregatedSet) Summary {
	if unreadable.Is(set) {
		return Summary{Phase: unreadable.Phase, Reason: unreadable.Phase, Message: unreadable.Explain(set)}
	}
	s := Summary{Phase: phase(set)}
	s.count(set)
	if s.Phase == lwshelper.PhaseTerminating {
		return s
	}
	for _, conditionType := range append(Troubles(), disaggregatedsetv1.ConditionProgressing) {
		if c := meta.FindStatusCondition(set.Status.Conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
			s.Reason, s.Message = c.Reason, c.Message
			break
		}
	}
	return s
}

// phase returns the state of a set that can be read.
func phase(set *disaggregatedsetv1.DisaggregatedSet) string {
	is := func(conditionType string) bool {
		return meta.IsStatusConditionTrue(set.Status.Conditions, conditionType)
	}
	switch {
	case set.DeletionTimestamp != nil:
		return lwshelper.PhaseTerminating
	case is(namespaceuid.Condition):
		return lwshelper.PhasePending
	case is(disaggregatedsetv1.ConditionAvailable):
		return lwshelper.PhaseAvailable
	case is(disaggregatedsetv1.ConditionProgressing):
		return lwshelper.PhaseProgressing
	}
	return lwshelper.PhasePending
}

// count adds the numbers of all roles. A role that a scaler scales should have as many groups as its status says that it has.
func (s *Summary) count(set *disaggregatedsetv1.DisaggregatedSet) {
	for i := range set.Spec.Roles {
		role := &set.Spec.Roles[i]
		c := RoleCount{Name: role.Name}
		at := slices.IndexFunc(set.Status.RoleStatuses, func(status disaggregatedsetv1.RoleStatus) bool { return status.Name == role.Name })
		if at >= 0 {
			status := &set.Status.RoleStatuses[at]
			c.Ready, c.Updated, c.Wanted = int(status.ReadyReplicas), int(status.UpdatedReplicas), int(status.Replicas)
		}
		if !External(role) {
			c.Wanted = int(max(0, ptr.Deref(role.Spec.Replicas, 1))) * int(Slices(set))
		}
		if at >= 0 && c.Ready >= c.Wanted && c.Updated >= c.Wanted {
			s.RolesReady++
		}
		s.Roles = append(s.Roles, c)
		s.Ready, s.Updated, s.Wanted = s.Ready+c.Ready, s.Updated+c.Updated, s.Wanted+c.Wanted
	}
}
