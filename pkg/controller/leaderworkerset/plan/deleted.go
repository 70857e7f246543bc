// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// verdict is what the deletion of a leader pod means.
type verdict int

const (
	// undecided is what cannot be known yet.
	undecided verdict = iota
	// expectedDeletion is no recreation, or one that was recorded before.
	expectedDeletion
	// awaitedDeletion carries out a restart that was counted, and waits.
	awaitedDeletion
	// unexpectedDeletion is not the decision of this controller: a user has deleted the pod, it was evicted, or its
	// StatefulSet has replaced it because it failed.
	unexpectedDeletion
)

// deletedLeader is a leader pod that is gone, or is being deleted.
type deletedLeader struct {
	*Pod
	index int32
	verdict
}

// recordDeleted records the groups that are recreated because their leader pod was deleted, whoever has done that. The
// StatefulSet of the leaders creates the next one, so that no limit and no delay holds. One pass records at most one
// recreation of each group, so the UID in the entry of the group identifies the last recorded leader pod.
func recordDeleted(r *restarts) (c changes) {
	recorded := map[int32]bool{}
	for _, d := range deletedLeaders(r) {
		switch {
		case d.verdict == undecided:
			continue
		case d.verdict == expectedDeletion:
			if d.index >= 0 && r.stored[d.index].RestartedLeader == d.UID {
				c.plan.Recorded = append(c.plan.Recorded, d.UID)
			}
		case recorded[d.index] || len(recorded) == maxGroupWrites:
			c.plan.More = true
			continue
		default:
			recorded[d.index] = true
			e, part := recordRecreation(r, d)
			c.entries, c.decided = append(c.entries, e), append(c.decided, d.index)
			c.plan.add(part)
		}
		c.plan.Evaluated = append(c.plan.Evaluated, d.UID)
	}
	return c
}

// deletedLeaders returns the leader pods that are gone, followed by the leader pods that are being deleted, each with a verdict.
func deletedLeaders(r *restarts) (out []deletedLeader) {
	var requested map[types.UID]bool
	if req := r.Set.Status.Restart; req != nil {
		requested = setOf(req.Leaders)
	}
	add := func(leader *Pod) {
		d := deletedLeader{leader, -1, expectedDeletion}
		if parent, index := helper.ParentAndOrdinal(leader.Name); index >= 0 && parent == r.Set.Name {
			d.index, d.verdict = index, verdictOf(r, leader, index, requested[leader.UID])
		}
		out = append(out, d)
	}
	for i := range r.GoneLeaders {
		add(&r.GoneLeaders[i])
	}
	for i := range r.groups {
		if leader := r.groups[i].leader; leader.Deleting {
			add(leader)
		}
	}
	return out
}

// verdictOf returns what the deletion of a leader pod means. requested means that users have requested the deletion.
func verdictOf(r *restarts, leader *Pod, index int32, requested bool) verdict {
	stored := r.stored[index]
	switch sts := r.Leader; {
	case requested || r.Evaluated[leader.UID] || !belongs(leader, index, sts):
		return expectedDeletion
	case stored.RestartedLeader != "" && stored.RestartedLeader == leader.UID:
		if stored.Failed || stored.RestartAt != nil {
			return awaitedDeletion
		}
		return expectedDeletion
	case replacedLeader(r, leader.UID, index):
		return expectedDeletion // what came after it is recorded
	}
	return verdictOfUpdate(leader, index, r.Leader)
}

// belongs returns whether a leader pod is, or was, one of those that a StatefulSet has at rest.
func belongs(leader *Pod, index int32, sts *appsv1.StatefulSet) bool {
	return sts != nil && leader.Controller == sts.UID && index < leaderCount(sts)
}

// verdictOfUpdate returns whether a leader pod may have been deleted by an update.
func verdictOfUpdate(leader *Pod, index int32, sts *appsv1.StatefulSet) verdict {
	released, current := index >= partitionOf(sts), sts.Status.UpdateRevision
	switch {
	case released && leader.Revision != sts.Labels[leaderworkersetv1.RevisionKey]:
		return expectedDeletion
	case sts.Status.ObservedGeneration < sts.Generation:
		return undecided
	case released && leader.OwnRevision != "" && current != "" && leader.OwnRevision != current:
		return expectedDeletion // the StatefulSet has another template, without another revision of the set
	}
	return unexpectedDeletion
}

// replacedLeader returns whether the entry of a group names a leader pod that came after the given one: the pod that it has now, or one
// that is gone, too. Another process may have recorded both.
func replacedLeader(r *restarts, leader types.UID, index int32) bool {
	recorded := r.stored[index].RestartedLeader
	if now := r.groupAt(index); now != nil && now.leader.UID != leader && recorded == now.leader.UID {
		return true
	}
	is := func(uid types.UID) int {
		return slices.IndexFunc(r.GoneLeaders, func(gone Pod) bool { return gone.UID == uid })
	}
	at := is(leader)
	return at >= 0 && recorded != "" && is(recorded) > at
}

// recordRecreation records that a group is recreated. It counts unless that was decided before, or the limit is
// reached: what cannot be prevented does not exceed it.
func recordRecreation(r *restarts, d deletedLeader) (e leaderworkersetv1.GroupStatus, part Plan) {
	g := &group{index: d.index, leader: d.Pod, workers: workersOf(r.Observed, d.UID)}
	e = r.entry(d.index)
	if d.verdict == unexpectedDeletion {
		cause, said := causeOf(r.snapshot, failure{g, trigger{pods: []*Pod{d.Pod}}})
		if !said {
			cause.Message = "the pod was deleted"
		}
		e.FirstCause, part.Asks = cause, askCause(r.snapshot, g)
		if !exhausted(r.Set, &e) {
			e.Restarts += one(e.Restarts < maxRestarts)
		}
		r.backoff.next(&e, r.Now)
	}
	e.RestartedLeader, e.RestartAt, e.Failed, e.LastRestartTime = d.UID, nil, false, ptr.To(r.Now)
	e.Incomplete = hasToBuild(r.Set, d.Pod)
	part.Events = []Event{{
		Type: corev1.EventTypeNormal, Reason: reasonRecreateGroup, Action: ActionDelete, Related: d.Name,
		Note: fmt.Sprintf("Leader pod %s was deleted, group %d is recreated", d.Name, groupLabel(g)),
	}}
	return e, part
}

// workersOf returns the StatefulSet of workers that a leader pod controls; nil if there is none.
func workersOf(o Observed, leader types.UID) *Workers {
	for i := range o.Workers {
		if o.Workers[i].Leader == leader {
			return &o.Workers[i]
		}
	}
	return nil
}
