// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// maxNamedGroups is how many failed groups a message names.
const maxNamedGroups = 10

// exhausted returns whether a group was recreated as often as it may be.
func exhausted(set *leaderworkersetv1.LeaderWorkerSet, e *leaderworkersetv1.GroupStatus) bool {
	limit := set.Spec.LeaderWorkerTemplate.MaxGroupRestarts
	return limit != nil && e.Restarts >= *limit
}

// groupFailed reports that a group is left as it is.
func groupFailed(set *leaderworkersetv1.LeaderWorkerSet, e *leaderworkersetv1.GroupStatus) Event {
	return Event{
		Type: corev1.EventTypeWarning, Reason: leaderworkersetv1.ReasonMaxGroupRestartsExceeded, Action: ActionUpdate,
		Note: fmt.Sprintf("Group %d has failed again after %s and is left as it is; maxGroupRestarts is %d", e.Index, times(e.Restarts),
			*set.Spec.LeaderWorkerTemplate.MaxGroupRestarts),
	}
}

func times(restarts int32) string {
	if restarts == 1 {
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", restarts)
}

// limitReached returns what the condition Failed says: whether groups have used up maxGroupRestarts. An event reports each of them.
func limitReached(set *leaderworkersetv1.LeaderWorkerSet, entries []leaderworkersetv1.GroupStatus) hostplan.Trouble {
	t := hostplan.Trouble{Type: leaderworkersetv1.ConditionFailed, Reason: leaderworkersetv1.ReasonMaxGroupRestartsExceeded, Quiet: true,
		EachChange: true}
	var named []string
	more := 0
	for i := range entries {
		switch e := &entries[i]; {
		case !e.Failed:
		case len(named) < maxNamedGroups:
			named = append(named, fmt.Sprintf("group %d (%s)", e.Index, times(e.Restarts)))
		default:
			more++
		}
	}
	if len(named) == 0 {
		t.Over, t.Message = true, "No group has used up maxGroupRestarts"
		return t
	}
	t.Message = exceeded(set, named, more)
	return t
}

func exceeded(set *leaderworkersetv1.LeaderWorkerSet, named []string, more int) string {
	has := "has"
	if len(named)+more > 1 {
		has = "have"
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	list := named[0]
	if last := len(named) - 1; last > 0 {
		list = strings.Join(named[:last], ", ") + " and " + named[last]
	}
	// maxGroupRestarts is set: follow ends what is failed otherwise.
	limit := int32(0)
	if m := set.Spec.LeaderWorkerTemplate.MaxGroupRestarts; m != nil {
		limit = *m
	}
	return fmt.Sprintf("%s%s %s failed again; maxGroupRestarts is %d", strings.ToUpper(list[:1]), list[1:], has, limit)
}
