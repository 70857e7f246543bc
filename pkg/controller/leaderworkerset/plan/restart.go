// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
	r := newRestarts(s, st.next.Groups)
	r.take(follow, recordDeleted, recreateFailed)
	if len(r.plan.Asks.Causes) > 0 {
		return Plan{Asks: r.plan.Asks}
	}
	r.take(noteFirstBuilds, deleteDecided, deleteRequested)
	st.events = append(st.events, r.plan.Events...)
	st.next.Groups, st.next.Restart = storedEntries(r), nextRequest(s, st.next.Restart)
	st.fold(limitReached(s.Set, st.next.Groups))
	return r.plan
}

// restarts is the state that the steps look at. Only take changes it.
type restarts struct {
	*snapshot
	backoff backoff
	// stored are the entries of groups as they are stored, and entries are the next ones as far as the steps before have made them, by index.
	stored, entries map[int32]leaderworkersetv1.GroupStatus
	// decided are the groups about which this plan decides something that has to be stored before anything follows from it.
	decided map[int32]bool
	// underway is the number of groups whose leader is about to be deleted, or would be if the limit allowed it.
	underway int
	// plan is the part of the plan about leaders as far as the steps before have made it.
	plan Plan
}

// changes are what a step wants.
type changes struct {
	// entries take the place of the entries of their groups.
	entries []leaderworkersetv1.GroupStatus
	// decided are the indexes of groups for restarts.decided, and underway is added to restarts.underway.
	decided  []int32
	underway int
	// counted and leaving are the groups to mark as such.
	counted, leaving []*group
	// plan is a part of the plan.
	plan Plan
}

func newRestarts(s *snapshot, next []leaderworkersetv1.GroupStatus) *restarts {
	r := &restarts{
		snapshot: s, backoff: backoffOf(s.Set), stored: byIndex(s.Set.Status.Groups), entries: byIndex(next), decided: map[int32]bool{},
	}
	for _, e := range r.stored {
		if g := r.groupAt(e.Index); g != nil {
			g.incomplete = e.Incomplete
		}
	}
	return r
}

func byIndex(entries []leaderworkersetv1.GroupStatus) map[int32]leaderworkersetv1.GroupStatus {
	out := make(map[int32]leaderworkersetv1.GroupStatus, len(entries))
	for i := range entries {
		out[entries[i].Index] = entries[i]
	}
	return out
}

// take takes steps, each of which sees what those before it have changed.
func (r *restarts) take(steps ...func(*restarts) changes) {
	for _, step := range steps {
		c := step(r)
		for i := range c.entries {
			r.entries[c.entries[i].Index] = c.entries[i]
		}
		for _, index := range c.decided {
			r.decided[index] = true
		}
		for _, g := range c.counted {
			g.counted = true
		}
		for _, g := range c.leaving {
			g.leaving = true
		}
		r.underway += c.underway
		r.plan.add(c.plan)
	}
}

// entry returns the entry of a group, which is new if there is none.
func (r *restarts) entry(index int32) leaderworkersetv1.GroupStatus {
	e := r.entries[index]
	e.Index = index
	return e
}

// follow ends what the entries say about leaders that are gone, or soon will be, and follows how long groups are ready.
func follow(r *restarts) (c changes) {
	recreate, _ := recreates(r.Set)
	for index, stored := range r.entries {
		g, e := r.groupAt(index), stored
		current := g != nil && e.RestartedLeader == g.leader.UID && !g.leader.Deleting
		if current && !recreate && (e.Failed || r.backoff.waits(&e, r.Now)) {
			// The policy has changed, and the group stays.
			e.RestartedLeader, e.Incomplete, current = "", false, false
		}
		if !current {
			e.RestartAt, e.Failed = nil, false
		} else {
			c.underway++
		}
		e.Incomplete = e.Incomplete && !isBuilt(g, &e)
		r.backoff.follow(&e, g != nil && g.ready, r.Now)
		if e != stored {
			c.entries = append(c.entries, e)
		}
	}
	return c
}

// recreateFailed decides which groups are recreated because pods of them have failed.
func recreateFailed(r *restarts) (c changes) {
	underway := r.underway
	for _, f := range failedGroups(r) {
		index := f.group.index
		if r.decided[index] {
			c.plan.More = true // what became of the leader before is stored first
			continue
		}
		if underway >= leaderworkersetv1.MaxGroupStatuses || len(c.decided) == maxGroupWrites {
			c.plan.More = true
			return c
		}
		if e, found := r.entries[index]; !found || e.RestartedLeader != f.group.leader.UID {
			underway++
		}
		e, part := recreate(r, f)
		c.entries, c.decided, c.counted = append(c.entries, e), append(c.decided, index), append(c.counted, f.group)
		c.plan.add(part)
	}
	return c
}

// failure is a group that has to be recreated.
type failure struct {
	group *group
	trigger
}

// failedGroups returns, by ascending index, the failed groups without a decision, and the groups that had reached a restart
// limit which was raised since.
func failedGroups(r *restarts) (out []failure) {
	recreate, afterStart := recreates(r.Set)
	if !recreate {
		return nil
	}
	for i := range r.groups {
		g := &r.groups[i]
		e, found := r.entries[g.index]
		switch {
		case found && e.RestartedLeader == g.leader.UID:
			if e.Failed && !g.leader.Deleting && !exhausted(r.Set, &e) {
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
func recreate(r *restarts, f failure) (e leaderworkersetv1.GroupStatus, part Plan) {
	g := f.group
	e = r.entry(g.index)
	if f.holds() {
		e.FirstCause, _ = causeOf(r.snapshot, f)
		part.Asks = askCause(r.snapshot, g)
	}
	e.RestartedLeader, e.RestartAt = g.leader.UID, nil
	if e.Failed = exhausted(r.Set, &e); e.Failed {
		part.Events = []Event{groupFailed(r.Set, &e)}
		return e, part
	}
	e.Incomplete = hasToBuild(r.Set, g.leader)
	e.Restarts += one(e.Restarts < maxRestarts)
	if at := r.backoff.next(&e, r.Now); at != nil {
		e.RestartAt = at
	} else {
		e.LastRestartTime = ptr.To(r.Now)
	}
	return e, part
}

// deleteDecided deletes the leaders of groups of which it is stored that they are recreated. What is decided now is stored first.
func deleteDecided(r *restarts) (c changes) {
	for i := range r.groups {
		g := &r.groups[i]
		e, found := r.entries[g.index]
		if !found || e.RestartedLeader != g.leader.UID || e.Failed || g.leader.Deleting {
			continue
		}
		if r.backoff.waits(&e, r.Now) {
			// Until the time is stored, each decision computes a new one. That would take the place of the pause after a status that is refused.
			if !r.decided[g.index] {
				c.plan.actAfter(e.RestartAt.Sub(r.Now.Time))
			}
			continue
		}
		if c.leaving = append(c.leaving, g); r.decided[g.index] {
			continue
		}
		if len(c.plan.DeleteLeaders) >= maxGroupWrites {
			c.plan.More = true
			return c
		}
		if e.RestartAt != nil {
			e.RestartAt, e.LastRestartTime = nil, ptr.To(r.Now)
			c.entries = append(c.entries, e)
		}
		c.plan.DeleteLeaders = append(c.plan.DeleteLeaders, deletionOf(g, recreateGroup(g, &e)))
	}
	return c
}

// deletionOf deletes the leader of a group.
func deletionOf(g *group, e Event) Deletion {
	return Deletion{Ref: g.leader.Ref, Event: &e, Group: g.index, Requested: e.Reason == reasonRestartRequested}
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
