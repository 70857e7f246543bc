// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// brokenAfter is for how long a group of a former revision that is not ready holds up the update that may repair it.
const brokenAfter = 10 * time.Minute

// group is one group that has a leader pod.
type group struct {
	index  int32
	leader *Pod
	// workers is the StatefulSet that the leader pod controls; nil if there is none.
	workers *Workers
	// size is the number of pods of the group at the revision of its leader.
	size int32
	// ready and updated are what the rolling update counts: neither holds for a group that lacks its workers.
	ready, updated bool
	// leaving means that the group is about to be recreated, and counted that this plan decides so: its leader is deleted by a later one only.
	leaving, counted bool
	// incomplete means that the status says of the group that it is being built.
	incomplete bool
	// brokenSince is since when a pod of the group is not ready; zero if none is known.
	brokenSince time.Time
}

// complete returns whether the group has its StatefulSet of workers, if it needs one.
func (g *group) complete() bool { return g.size == 1 || g.workers != nil }

// groupsOf returns the groups that have a leader pod, by ascending index.
func groupsOf(o Observed, rev revision) []group {
	sizes := sizesOf(o, rev)
	workers := make(map[types.UID]*Workers, len(o.Workers))
	for i := range o.Workers {
		if w := &o.Workers[i]; w.Leader != "" {
			workers[w.Leader] = w
		}
	}
	out := make([]group, 0, len(o.Leaders))
	for i := range o.Leaders {
		leader := &o.Leaders[i]
		parent, index := helper.ParentAndOrdinal(leader.Name)
		if index < 0 || parent != o.Set.Name {
			continue
		}
		g := group{index: index, leader: leader, size: sizes.of(leader)}
		if w := workers[leader.UID]; w != nil && w.Name == leader.Name {
			g.workers = w
		}
		g.setReady(rev.key)
		g.findBroken(g.complete() || canBuild(o, rev, leader))
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b group) int { return int(a.index) - int(b.index) })
	return out
}

// leadersByUID returns the leader pods by their UID.
func leadersByUID(o Observed) map[types.UID]*Pod {
	out := make(map[types.UID]*Pod, len(o.Leaders))
	for i := range o.Leaders {
		out[o.Leaders[i].UID] = &o.Leaders[i]
	}
	return out
}

// setReady sets whether the group is ready, and of the current revision. A group that is being deleted is not ready any
// longer, whatever its containers do.
func (g *group) setReady(key string) {
	if !g.complete() {
		return
	}
	l := g.leader
	g.ready = l.Phase == corev1.PodRunning && l.Ready && !l.Deleting
	g.updated = l.Revision == key
	if w := g.workers; g.size > 1 {
		g.ready = g.ready && w.Ready && !w.Deleting
		g.updated = g.updated && w.Revision == key
	}
}

// canBuild returns whether the workers of a leader could be created: its revision is there, and the domain of its node
// is known if that matters.
func canBuild(o Observed, rev revision, leader *Pod) bool {
	if leader.Revision != rev.key && newest(o.Revisions, leader.Revision) == nil {
		return false
	}
	_, exclusive := o.Set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]
	_, known := o.Domains[leader.Node]
	return !exclusive || leader.Node == "" || known
}

// findBroken finds the pod that has not been ready for longest. A group whose workers cannot be created was never ready.
func (g *group) findBroken(possible bool) {
	if g.ready || g.leader.Deleting {
		return
	}
	if !possible {
		g.brokenSince = g.leader.Created.Time
	}
	g.seeBroken(g.leader)
	if g.workers == nil {
		return
	}
	for i := range g.workers.Pods {
		g.seeBroken(&g.workers.Pods[i])
	}
}

func (g *group) seeBroken(pod *Pod) {
	since := pod.NotReadySince.Time
	if !pod.Ready && !since.IsZero() && (g.brokenSince.IsZero() || since.Before(g.brokenSince)) {
		g.brokenSince = since
	}
}

// broken returns whether the group has not been ready for so long that an update does not wait for it any longer.
func (g *group) broken(now time.Time) bool {
	return !g.brokenSince.IsZero() && now.Sub(g.brokenSince) >= brokenAfter
}

// sizes are the numbers of pods of a group.
type sizes struct {
	// known are the sizes by the key of the revision; 0 for revisions that are lost.
	known map[string]int32
	// live is the size in the spec, for pods of lost revisions that do not state their size.
	live int32
}

func (s sizes) of(leader *Pod) int32 {
	return cmp.Or(s.known[leader.Revision], leader.Size, s.live)
}

// sizesOf returns the sizes of the groups that exist. A group of a former revision has the size of that revision until it is replaced.
func sizesOf(o Observed, rev revision) sizes {
	out := sizes{known: map[string]int32{rev.key: helper.Size(o.Set)}, live: helper.Size(o.Set)}
	for i := range o.Leaders {
		key := o.Leaders[i].Revision
		if _, ok := out.known[key]; ok {
			continue
		}
		out.known[key] = 0
		if r := newest(o.Revisions, key); r != nil {
			if n, err := helper.SizeOfRevision(r.Data.Raw); err == nil {
				out.known[key] = n
			}
		}
	}
	return out
}
