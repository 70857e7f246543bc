// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	jobset "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// Bounds of lists and texts of a status.
const (
	// MaxGroups bounds status.groups, and the groups that are restarted by index.
	MaxGroups = 1000
	// MaxRestartLeaders bounds the leader pods of one requested restart.
	MaxRestartLeaders = 10_000

	maxSelector = 1024
	maxUser     = 256
	maxReason   = 1024
	maxUID      = 128
)

var actions = []leaderworkerset.Action{
	leaderworkerset.ActionRestart, leaderworkerset.ActionRollback, leaderworkerset.ActionPause, leaderworkerset.ActionResume,
}

// ValidateLeaderWorkerSetStatusUpdate checks a change of the status: the limits of the published schema, and those of our fields.
func ValidateLeaderWorkerSetStatusUpdate(next, prev *leaderworkerset.LeaderWorkerSet) field.ErrorList {
	return generic.Status(&next.Status, &prev.Status, statusSizes, validateStatus)
}

func statusSizes(status *leaderworkerset.LeaderWorkerSetStatus) *generic.Sizes {
	s, path := &generic.Sizes{}, field.NewPath("status")
	s.List(path.Child("conditions"), len(status.Conditions), generic.MaxConditions)
	s.List(path.Child("groups"), len(status.Groups), MaxGroups)
	if restart := status.Restart; restart != nil {
		s.List(path.Child("restart", "groups"), len(restart.Groups), MaxGroups)
		s.List(path.Child("restart", "leaders"), len(restart.Leaders), MaxRestartLeaders)
	}
	return s
}

func validateStatus(status *leaderworkerset.LeaderWorkerSetStatus) field.ErrorList {
	path := field.NewPath("status")
	errs := slices.Concat(
		metav1validation.ValidateConditions(status.Conditions, path.Child("conditions")),
		generic.Count(status.ReadyReplicas, path.Child("readyReplicas")),
		generic.Count(status.UpdatedReplicas, path.Child("updatedReplicas")),
		generic.Count(status.Replicas, path.Child("replicas")),
		generic.Count(status.ObservedGeneration, path.Child("observedGeneration")),
		generic.BytesWithin(status.HPAPodSelector, maxSelector, path.Child("hpaPodSelector")),
		validateGroups(status.Groups, path.Child("groups")),
	)
	if restart := status.Restart; restart != nil {
		errs = append(errs, validateRestart(restart, path.Child("restart"))...)
	}
	if action := status.LastAction; action != nil {
		errs = append(errs, validateLastAction(action, path.Child("lastAction"))...)
	}
	return errs
}

func validateGroups(groups []leaderworkerset.GroupStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[int32]struct{}, len(groups))
	for i := range groups {
		group, p := &groups[i], path.Index(i)
		if _, dup := seen[group.Index]; dup {
			errs = append(errs, podtemplate.Duplicate(p, group.Index))
		}
		seen[group.Index] = struct{}{}
		errs = append(errs, slices.Concat(
			generic.Count(group.Index, p.Child("index")),
			generic.Count(group.Restarts, p.Child("restarts")),
			generic.Count(group.RestartsInRow, p.Child("restartsInRow")),
			generic.BytesWithin(string(group.RestartedLeader), maxUID, p.Child("restartedLeader")),
		)...)
		if group.FirstCause != nil {
			errs = append(errs, jobset.ValidateCause(group.FirstCause, p.Child("firstCause"))...)
		}
	}
	return errs
}

func validateRestart(restart *leaderworkerset.RequestedRestart, path *field.Path) field.ErrorList {
	errs := unique(restart.Groups, path.Child("groups"))
	for i, index := range restart.Groups {
		errs = append(errs, generic.Count(index, path.Child("groups").Index(i))...)
	}
	errs = append(errs, unique(restart.Leaders, path.Child("leaders"))...)
	for i, uid := range restart.Leaders {
		errs = append(errs, generic.BytesWithin(string(uid), maxUID, path.Child("leaders").Index(i))...)
	}
	if restart.GroupsLeft != nil {
		errs = append(errs, generic.Count(*restart.GroupsLeft, path.Child("groupsLeft"))...)
	}
	return errs
}

// unique checks a list that is a set.
func unique[T int32 | types.UID](list []T, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[T]struct{}, len(list))
	for i, item := range list {
		if _, dup := seen[item]; dup {
			errs = append(errs, podtemplate.Duplicate(path.Index(i), item))
		}
		seen[item] = struct{}{}
	}
	return errs
}

func validateLastAction(action *leaderworkerset.LastAction, path *field.Path) field.ErrorList {
	errs := enum(path.Child("action"), action.Action, actions)
	if action.Group != nil {
		errs = append(errs, generic.Count(*action.Group, path.Child("group"))...)
	}
	return append(errs, slices.Concat(
		generic.BytesWithin(action.User, maxUser, path.Child("user")),
		generic.CharactersWithin(action.Reason, maxReason, path.Child("reason")),
		generic.Count(action.Revision, path.Child("revision")),
	)...)
}
