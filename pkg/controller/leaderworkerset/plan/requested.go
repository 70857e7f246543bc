// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// maxRequestedLeaders is how many leaders of a requested restart are stored at a time. Those of larger sets follow once
// half of them are gone.
const maxRequestedLeaders = leaderworkersetv1.MaxGroupStatuses

// nextRequest returns the next status.restart, given the present one: it finds the leaders to delete because users have requested a
// restart, and ends the restart when none of them is left. It takes all leaders that exist when the controller sees the request: Observed
// has at least the leaders that the API had after the request. Later leaders stay. Times are not compared, because one server sets the
// times of pods and another one the time of the request.
func nextRequest(s *snapshot, req *leaderworkersetv1.RequestedRestart) *leaderworkersetv1.RequestedRestart {
	if req == nil || s.Leader == nil {
		return req
	}
	next := *req
	alive := leadersByUID(s.Observed)
	left := slices.DeleteFunc(slices.Clone(req.Leaders), func(uid types.UID) bool { return alive[uid] == nil })
	if !req.Found && len(left) <= maxRequestedLeaders/2 {
		next.Leaders, next.GroupsLeft = requestedLeaders(s, req, left)
		next.Found = next.GroupsLeft == nil
		left = next.Leaders
	}
	if next.Found && len(left) == 0 {
		return nil
	}
	return &next
}

// requestedLeaders returns the leaders that have to be deleted, those that are known first, and how many groups from
// index 0 on are left to look at; nil if these leaders are all. Groups are looked at once, highest first: those of a
// set that is too large to be found at once have other leaders by the time the next ones are found.
func requestedLeaders(s *snapshot, req *leaderworkersetv1.RequestedRestart, known []types.UID) (leaders []types.UID, left *int32) {
	has, groups := setOf(known), setOf(req.Groups)
	wanted := func(g *group) bool {
		looked := req.GroupsLeft != nil && g.index >= *req.GroupsLeft
		return !looked && !g.leader.Deleting && !has[g.leader.UID] && (req.All || groups[g.index])
	}
	var found []types.UID
	for i := len(s.groups) - 1; i >= 0 && left == nil; i-- {
		g := &s.groups[i]
		switch {
		case !wanted(g):
		case len(known)+len(found) < maxRequestedLeaders:
			found = append(found, g.leader.UID)
		default:
			left = ptr.To(g.index + 1)
		}
	}
	slices.Reverse(found)
	return append(known, found...), left
}

func setOf[T comparable](list []T) map[T]bool {
	out := make(map[T]bool, len(list))
	for _, t := range list {
		out[t] = true
	}
	return out
}

// deleteRequested deletes leaders that a stored request names: groups by index at once; of all groups so many that no
// more are unavailable than in a rolling update, highest first, and those at once that are not ready anyhow.
func deleteRequested(r *restarts) (c changes) {
	req := r.Set.Status.Restart
	if req == nil {
		return c
	}
	requested, byIndex := setOf(req.Leaders), setOf(req.Groups)
	budget := max(1, helper.MaxUnavailable(r.Set)) - unavailable(r.snapshot)
	for i := len(r.groups) - 1; i >= 0; i-- {
		g := &r.groups[i]
		if !requested[g.leader.UID] || g.leader.Deleting || g.leaving || r.decided[g.index] {
			continue
		}
		if paced := req.All && g.ready && !byIndex[g.index]; paced {
			if budget <= 0 {
				continue
			}
			budget--
		}
		if len(r.plan.DeleteLeaders)+len(c.plan.DeleteLeaders) >= maxGroupWrites {
			c.plan.More = true
			return c
		}
		c.entries, c.leaving = append(c.entries, requestedEntry(r, g)), append(c.leaving, g)
		c.plan.DeleteLeaders = append(c.plan.DeleteLeaders, deletionOf(g, restartRequested(g)))
	}
	return c
}

// requestedEntry returns the entry of a group that begins again without delay, because users have requested it.
func requestedEntry(r *restarts, g *group) leaderworkersetv1.GroupStatus {
	e := r.entry(g.index)
	e.LastRestartTime, e.Failed = ptr.To(r.Now), false
	e.RestartsInRow, e.RestartAt, e.ReadySince = 0, nil, nil
	e.Incomplete = hasToBuild(r.Set, g.leader)
	return e
}

// restartRequested is the event about a group that is recreated because users have requested it.
func restartRequested(g *group) Event {
	return Event{
		Type: corev1.EventTypeNormal, Reason: reasonRestartRequested, Action: ActionDelete, Related: g.leader.Name,
		Note: fmt.Sprintf("Deleted leader pod %s to recreate group %d on request", g.leader.Name, groupLabel(g)),
	}
}

// unavailable returns the number of groups that are not ready, those without a leader included.
func unavailable(s *snapshot) int32 {
	wanted := helper.Replicas(s.Set)
	if s.Leader != nil {
		wanted = ptr.Deref(s.Leader.Spec.Replicas, 1)
	}
	missing := wanted
	for i := range s.groups {
		if g := &s.groups[i]; g.index < wanted && g.ready && !g.leaving {
			missing--
		}
	}
	return missing
}

// reasonRestartRequested is the reason of the events about groups that users recreate.
const reasonRestartRequested = reasons.RestartRequested
