// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// Restart asks the controller to recreate groups: it finds their leader pods, and deletes them. Several people who ask
// for the same, or one who repeats the request, cause one restart.
func Restart(set *leaderworkerset.LeaderWorkerSet, spec *batch.LeaderWorkerSetRestartSpec,
	call Call) (*batch.LeaderWorkerSetActionStatus, error) {
	if err := checkMeant(set, spec.Preconditions); err != nil {
		return nil, err
	}
	if err := checkGroup(set, spec); err != nil {
		return nil, err
	}
	if requested(set.Status.Restart, spec.Group) {
		return nothing(set, joined(set, spec.Group, call)), nil
	}
	if err := checkGeneration(set, spec.Preconditions); err != nil {
		return nil, err
	}
	if spec.Group != nil {
		if err := checkRestarts(set, *spec.Group, spec.Preconditions); err != nil {
			return nil, err
		}
	}
	next, err := add(set, spec.Group, call)
	if err != nil {
		return nil, err
	}
	set.Status.Restart = next
	record(set, leaderworkerset.LastAction{Action: leaderworkerset.ActionRestart, Reason: spec.Reason, Group: copyOf(spec.Group)}, call)
	return recorded(set, fmt.Sprintf("the restart of %s was requested", what(spec.Group))), nil
}

// checkGroup refuses to restart what a set does not have.
func checkGroup(set *leaderworkerset.LeaderWorkerSet, spec *batch.LeaderWorkerSetRestartSpec) error {
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	if replicas < 1 {
		return conflict(set, "the LeaderWorkerSet has no groups (spec.replicas is 0), so there is nothing to restart")
	}
	if spec.Group == nil || *spec.Group < replicas {
		return nil
	}
	return apierrors.NewInvalid(batch.Kind("LeaderWorkerSetRestart"), set.Name, field.ErrorList{field.Invalid(
		field.NewPath("spec", "group"), *spec.Group, fmt.Sprintf("must be the index of a group of the LeaderWorkerSet, from 0 to %d",
			replicas-1))})
}

// requested returns whether a restart that is not complete is one of the group, or of all groups, already.
func requested(r *leaderworkerset.RequestedRestart, group *int32) bool {
	return r != nil && (r.All || group != nil && slices.Contains(r.Groups, *group))
}

// add returns the requested restart with a group, or all, in addition. Leader pods that the controller has found are
// kept. It looks for those of the groups of this request only: a group that was recreated for an earlier request is not
// recreated again.
func add(set *leaderworkerset.LeaderWorkerSet, group *int32, call Call) (*leaderworkerset.RequestedRestart, error) {
	next := &leaderworkerset.RequestedRestart{RequestTime: call.now(), All: group == nil}
	before := set.Status.Restart
	if before != nil {
		next.Leaders = slices.Clone(before.Leaders)
	}
	if group == nil {
		return next, nil
	}
	next.Groups = []int32{*group}
	if before != nil && !before.Found {
		next.Groups = append(next.Groups, before.Groups...)
		slices.Sort(next.Groups)
	}
	if len(next.Groups) > leaderworkersetv1.MaxGroupStatuses {
		return nil, conflict(set, "restarts of %d groups are pending, which is the limit; try again when the first have begun, or restart the "+
			"whole LeaderWorkerSet",
			leaderworkersetv1.MaxGroupStatuses)
	}
	return next, nil
}

// joined describes the restart that a request asks for, and that is not complete.
func joined(set *leaderworkerset.LeaderWorkerSet, group *int32, call Call) string {
	by := call.ago(&set.Status.Restart.RequestTime)
	if last := set.Status.LastAction; asLast(set, leaderworkerset.ActionRestart) && last.User != "" {
		by += " by " + last.User
	}
	subject := what(group)
	if set.Status.Restart.All {
		subject = what(nil)
	}
	return fmt.Sprintf("a restart of %s, requested%s, is not complete; not restarted again", subject, by)
}

// what a restart is about.
func what(group *int32) string {
	if group == nil {
		return "all groups"
	}
	return fmt.Sprintf("group %d", *group)
}

func copyOf(n *int32) *int32 {
	if n == nil {
		return nil
	}
	return ptr.To(*n)
}
