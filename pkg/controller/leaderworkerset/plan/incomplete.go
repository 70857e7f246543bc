// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// This file decides whether a group was ever complete: whether all of its workers have existed at the same time. A process knows that of
// groups that it has seen from their beginning. For the others, the entry of a group in the status says that the group is being built:
// that is stored together with the decision to recreate it, and ends with a write of the status once all workers are there.
//
// A group that was not recreated has no such entry as long as its workers stay. To end it would need a write of its own for each new group
// once all workers are there. The write that counts the ready groups is too late: a worker that goes before it is a reason to recreate the
// group. The entry is made when a worker goes. So a process that starts after the first eviction of a drain knows what this one did.

// neverComplete returns whether the workers of the group have never existed at the same time. What is not known counts as complete.
func (g *group) neverComplete() bool {
	w := g.workers
	return w.NeverComplete || g.incomplete && !w.Complete && !g.existsAtOnce()
}

// wasComplete returns whether it is known that the workers of the group have existed at the same time.
func (g *group) wasComplete() bool {
	w := g.workers
	return g.size == 1 || w != nil && (w.Complete || !w.NeverComplete && g.existsAtOnce())
}

// existsAtOnce returns whether all workers exist, and the last one was created before the deletion of the first one began. All of these
// times are of one clock, in whole seconds. A worker that was created in the second of the deletion has not met the pod that was deleted.
func (g *group) existsAtOnce() bool {
	w := g.workers
	var created, deleting time.Time
	for i := range w.Pods {
		pod := &w.Pods[i]
		if pod.Created.After(created) {
			created = pod.Created.Time
		}
		switch since := pod.DeletingSince.Time; {
		case !pod.Deleting:
		case since.IsZero():
			return false
		case deleting.IsZero() || since.Before(deleting):
			deleting = since
		}
	}
	return len(w.Pods) >= int(g.size)-1 && (deleting.IsZero() || created.Before(deleting))
}

// hasToBuild returns whether the workers of a group that is recreated have to be created. Groups of one pod have no workers, and groups
// that are not recreated when a pod of them fails need no note.
func hasToBuild(set *leaderworkersetv1.LeaderWorkerSet, leader *Pod) bool {
	recreate, _ := recreates(set)
	return recreate && cmp.Or(leader.Size, helper.Size(set)) > 1
}

// noteFirstBuilds notes groups that were never complete and lose a worker that had started. They are not recreated for that.
func noteFirstBuilds(r *restarts) (c changes) {
	if recreate, _ := recreates(r.Set); !recreate {
		return c
	}
	for i := range r.groups {
		g := &r.groups[i]
		if !g.losesWhileBuilt() {
			continue
		}
		if e, found := r.entries[g.index]; !found || e.RestartedLeader != g.leader.UID {
			e.Index, e.Incomplete = g.index, true
			c.entries = append(c.entries, e)
		}
	}
	return c
}

// losesWhileBuilt returns whether a worker that had started is being deleted, and this process has seen that the group was never complete.
func (g *group) losesWhileBuilt() bool {
	if g.leader.Deleting || g.workers == nil || !g.workers.NeverComplete {
		return false
	}
	for pod := range g.pods() {
		if pod.Phase != corev1.PodPending && g.replaces(pod) {
			return true
		}
	}
	return false
}

// isBuilt returns whether the workers of a recreated group are there. The entry of the group names the leader pod before.
func isBuilt(g *group, e *leaderworkersetv1.GroupStatus) bool {
	return g != nil && g.leader.UID != e.RestartedLeader && !g.leader.Deleting && g.wasComplete()
}
