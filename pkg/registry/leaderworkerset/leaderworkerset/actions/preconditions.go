// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
)

func conflict(set *leaderworkerset.LeaderWorkerSet, format string, args ...any) *apierrors.StatusError {
	return apierrors.NewConflict(leaderworkerset.Resource("leaderworkersets"), set.Name, fmt.Errorf(format, args...))
}

// checkMeant refuses what was meant for another set of the name, and every action on a set that is being deleted.
func checkMeant(set *leaderworkerset.LeaderWorkerSet, p *batch.LeaderWorkerSetPreconditions) error {
	if p != nil && p.UID != nil && *p.UID != set.UID {
		return action.Unmet(conflict(set, "preconditions.uid is %s, but the LeaderWorkerSet has the UID %s: it was deleted and recreated", *p.UID,
			set.UID),
			metav1.CauseTypeFieldValueInvalid, "uid", "the LeaderWorkerSet was deleted and recreated")
	}
	if set.DeletionTimestamp != nil {
		return conflict(set, "the LeaderWorkerSet is being deleted; recreate it after it is gone")
	}
	return nil
}

// checkGeneration refuses what was meant for another spec of the set.
func checkGeneration(set *leaderworkerset.LeaderWorkerSet, p *batch.LeaderWorkerSetPreconditions) error {
	if p == nil || p.Generation == nil || *p.Generation == set.Generation {
		return nil
	}
	kind, state := metav1.CauseTypeFieldValueInvalid, fmt.Sprintf("generation %d is current", set.Generation)
	if *p.Generation > set.Generation {
		kind = metav1.CauseTypeFieldValueNotFound
	}
	return action.Unmet(conflict(set, "preconditions.generation is %d, but %s", *p.Generation, state), kind, "generation", state)
}

// checkRestarts refuses the restart of a group that was restarted since the user saw it.
func checkRestarts(set *leaderworkerset.LeaderWorkerSet, group int32, p *batch.LeaderWorkerSetPreconditions) error {
	if p == nil || p.Restarts == nil {
		return nil
	}
	var restarts int32
	for i := range set.Status.Groups {
		if set.Status.Groups[i].Index == group {
			restarts = set.Status.Groups[i].Restarts
		}
	}
	if *p.Restarts == restarts {
		return nil
	}
	state := fmt.Sprintf("group %d has been restarted %s", group, times(restarts))
	return action.Unmet(conflict(set, "preconditions.restarts is %d, but %s", *p.Restarts, state), metav1.CauseTypeFieldValueInvalid,
		"restarts", state)
}

func times(n int32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// repeats returns whether a request names the generation that the last action, which is this one, has changed, and
// nothing was changed since.
func repeats(set *leaderworkerset.LeaderWorkerSet, asked leaderworkerset.Action, p *batch.LeaderWorkerSetPreconditions) bool {
	return asLast(set, asked) && p != nil && p.Generation != nil && *p.Generation == set.Generation-1
}
