// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// maxRestarts is the highest number of restarts that is counted.
const maxRestarts = 1<<31 - 1

// restartGroups carries out restart policies, limits and requested restarts. That a group is recreated, and how often
// it was, is stored first: its leader is deleted by a later plan, which finds the UID of the leader in status. So no
// failure counts twice, and no restart is lost. Other groups do not wait for that. It marks the groups that are about to
// be recreated. A part that asks for causes holds nothing else.
func restartGroups(s *snapshot, st *statusBuilder) Plan {
	r := newRestarts(s, st)
	r.follow()
	r.recordDeleted()
	r.recreateFailed()
	if len(r.plan.Asks.Causes) > 0 {
		return Plan{Asks: r.plan.Asks}
	}
	r.noteFirstBuilds()
	r.findRequested()
	r.deleteDecided()
	r.deleteRequested()
	r.store()
	r.reportLimit()
	return r.plan
}

// restarts are the entries of status.groups in the making.
type restarts struct {
	*snapshot
	st *statusBuilder
	// plan is the part of the plan about leaders.
	plan    Plan
	backoff backoff
	// entries of groups by index.
	entries map[int32]*leaderworkersetv1.GroupStatus
	// stored are the entries as they are stored, and leaders the groups, by index.
	stored  map[int32]leaderworkersetv1.GroupStatus
	leaders map[int32]*group
	// decided are the groups about which this plan decides something that has to be stored before anything follows from it.
	decided map[int32]bool
	// requested are the leader pods of a stored request; nil before isRequested is asked.
	requested map[types.UID]bool
	// underway is the number of groups whose leader is about to be deleted, or would be if the limit allowed it.
	underway int
}

func newRestarts(s *snapshot, st *statusBuilder) *restarts {
	r := &restarts{
		snapshot: s, st: st, backoff: backoffOf(s.Set), entries: byIndex(st.next.Groups),
		stored:  make(map[int32]leaderworkersetv1.GroupStatus, len(s.Set.Status.Groups)),
		leaders: make(map[int32]*group, len(s.groups)), decided: map[int32]bool{},
	}
	for _, e := range s.Set.Status.Groups {
		r.stored[e.Index] = e
	}
	for i := range s.groups {
		g := &s.groups[i]
		r.leaders[g.index], g.incomplete = g, r.stored[g.index].Incomplete
	}
	return r
}

func byIndex(entries []leaderworkersetv1.GroupStatus) map[int32]*leaderworkersetv1.GroupStatus {
	out := make(map[int32]*leaderworkersetv1.GroupStatus, len(entries))
	for i := range entries {
		out[entries[i].Index] = &entries[i]
	}
	return out
}

// entry returns the entry of a group, which is made if there is none.
func (r *restarts) entry(g *group) *leaderworkersetv1.GroupStatus {
	if r.entries[g.index] == nil {
		r.entries[g.index] = &leaderworkersetv1.GroupStatus{Index: g.index}
	}
	return r.entries[g.index]
}

// follow ends what the entries say about leaders that are gone, or soon will be, and follows how long groups are ready.
func (r *restarts) follow() {
	recreate, _ := recreates(r.Set)
	for index, e := range r.entries {
		g := r.leaders[index]
		current := g != nil && e.RestartedLeader == g.leader.UID && !g.leader.Deleting
		if current && !recreate && (e.Failed || r.waits(e)) {
			// The policy has changed, and the group stays.
			e.RestartedLeader, e.Incomplete, current = "", false, false
		}
		if !current {
			e.RestartAt, e.Failed = nil, false
		} else {
			r.underway++
		}
		r.followBuilding(g, e)
		r.backoff.follow(e, g != nil && g.ready, r.Now)
	}
}

// recreateFailed decides which groups are recreated because pods of them have failed.
func (r *restarts) recreateFailed() {
	decided := 0
	for _, f := range r.failures() {
		if r.decided[f.group.index] {
			r.plan.More = true // what became of the leader before is stored first
			continue
		}
		if r.underway >= leaderworkersetv1.MaxGroupStatuses || decided == maxGroupWrites {
			r.plan.More = true
			return
		}
		decided++
		if r.entries[f.group.index] == nil || r.entries[f.group.index].RestartedLeader != f.group.leader.UID {
			r.underway++
		}
		r.recreate(f)
	}
}

// failure is a group that has to be recreated.
type failure struct {
	group *group
	trigger
}

// failures returns, by ascending index, the failed groups without a decision, and the groups that had reached a restart
// limit which was raised since.
func (r *restarts) failures() (out []failure) {
	recreate, afterStart := recreates(r.Set)
	if !recreate {
		return nil
	}
	for i := range r.groups {
		g := &r.groups[i]
		e := r.entries[g.index]
		switch {
		case e != nil && e.RestartedLeader == g.leader.UID:
			if e.Failed && !g.leader.Deleting && !exhausted(r.Set, e) {
				out = append(out, failure{group: g})
			}
		default:
			if t := g.triggerOf(r.Observed, afterStart); t.holds() {
				out = append(out, failure{g, t})
			}
		}
	}
	return out
}

// recreate counts the restart of a group, unless its limit is reached.
func (r *restarts) recreate(f failure) {
	g := f.group
	r.decided[g.index], g.counted = true, true
	e := r.entry(g)
	if f.holds() {
		e.FirstCause, _ = r.causeOf(f)
	}
	e.RestartedLeader, e.RestartAt = g.leader.UID, nil
	if exhausted(r.Set, e) {
		e.Failed = true
		r.reportFailed(e)
		return
	}
	e.Failed = false
	r.build(e, g.leader)
	e.Restarts += one(e.Restarts < maxRestarts)
	if at := r.backoff.next(e, r.Now); at != nil {
		e.RestartAt = at
	} else {
		e.LastRestartTime = ptr.To(r.Now)
	}
}

// waits returns whether a restart that was decided waits for its time.
func (r *restarts) waits(e *leaderworkersetv1.GroupStatus) bool {
	return r.backoff.set && e.RestartAt != nil && r.Now.Before(e.RestartAt)
}

// wake has the next decision made when the restart of a group is due, once that time is stored: until then each decision computes a new
// one, which would take the place of the pause after a status that is refused.
func (r *restarts) wake(e *leaderworkersetv1.GroupStatus) {
	if !r.decided[e.Index] {
		r.plan.actAfter(e.RestartAt.Sub(r.Now.Time))
	}
}

// deleteDecided deletes the leaders of groups of which it is stored that they are recreated. What is decided now is stored first.
func (r *restarts) deleteDecided() {
	for i := range r.groups {
		g := &r.groups[i]
		e := r.entries[g.index]
		if e == nil || e.RestartedLeader != g.leader.UID || e.Failed || g.leader.Deleting {
			continue
		}
		if r.waits(e) {
			r.wake(e)
			continue
		}
		if g.leaving = true; r.decided[g.index] {
			continue
		}
		if !r.room() {
			return
		}
		if e.RestartAt != nil {
			e.RestartAt, e.LastRestartTime = nil, ptr.To(r.Now)
		}
		r.delete(g, recreateGroup(g, e))
	}
}

// room returns whether the plan can delete another leader. If not, another plan follows soon.
func (r *restarts) room() bool {
	if len(r.plan.DeleteLeaders) < maxGroupWrites {
		return true
	}
	r.plan.More = true
	return false
}

func (r *restarts) delete(g *group, e Event) {
	g.leaving = true
	r.plan.DeleteLeaders = append(r.plan.DeleteLeaders, Deletion{Ref: g.leader.Ref, Event: &e, Group: g.index,
		Requested: e.Reason == reasonRestartRequested})
}

// recreateGroup is the event about a group that is recreated after a failure.
func recreateGroup(g *group, e *leaderworkersetv1.GroupStatus) Event {
	pod := g.leader.Name
	if e.FirstCause != nil && e.FirstCause.Pod != "" {
		pod = e.FirstCause.Pod
	}
	return Event{
		Type: corev1.EventTypeNormal, Reason: reasonRecreateGroup, Action: ActionDelete, Related: g.leader.Name,
		Note: fmt.Sprintf("Worker pod %s failed, deleted leader pod %s to recreate group %d", pod, g.leader.Name, groupLabel(g)),
	}
}

// reasonRecreateGroup is the reason of the events about groups that are recreated.
const reasonRecreateGroup = "RecreateGroup"
