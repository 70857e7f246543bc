// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// applied checks the leader StatefulSet right before it is stored.
func (r *rules) applied(live, next *appsv1.StatefulSet) {
	r.Seen["applies of the leader statefulset"]++
	if live == nil || !equality.Semantic.DeepEqual(live.Spec, next.Spec) {
		r.struck = map[types.UID]bool{}
	}
	if live == nil || r.observed == nil {
		return
	}
	set := r.observed.Set
	was, is, n := partitionOf(live), partitionOf(next), int(ptr.Deref(live.Spec.Replicas, 1))
	if most := helper.Replicas(set) + helper.MaxSurge(set); *next.Spec.Replicas > most {
		r.Fail(ruleSurge, "it gets %d instead of at most %d", *next.Spec.Replicas, most)
	}
	if live.Labels[leaderworkersetv1.RevisionKey] != next.Labels[leaderworkersetv1.RevisionKey] {
		r.Seen["rolling updates"]++
		return
	}
	if is > was && is > int(helper.Partition(set)) && !helper.Paused(set) {
		r.Fail(rulePartition, "it goes from %d to %d", was, is)
	}
	if is >= was {
		return
	}
	r.Seen["steps of rolling updates"]++
	allowed := int(helper.MaxUnavailable(set)) + max(0, n-int(helper.Replicas(set)))
	if taken := r.oldAndReady(is, n, next.Labels[leaderworkersetv1.RevisionKey]); taken > allowed {
		r.Fail(ruleUnavailable, "the partition goes from %d to %d, which takes %d groups down instead of at most %d", was, is, taken, allowed)
	}
	stay := min(n, int(*next.Spec.Replicas)) // others are removed, and not updated
	r.released(is, was, stay, next.Labels[leaderworkersetv1.RevisionKey], int(helper.MaxUnavailable(set))+max(0, stay-int(helper.Replicas(set))))
}

// released checks that a step takes down no more groups than are allowed to be down in addition to the groups that are,
// as far as the controller saw. Groups that have been down for very long do not count.
func (r *rules) released(is, was, n int, key string, allowed int) {
	o := r.observed
	ready, old := map[int]bool{}, map[int]bool{}
	down := n
	for i := range o.Leaders {
		leader := &o.Leaders[i]
		group := ordinalNamed(leader.Name)
		if group >= n {
			continue
		}
		since, works := r.observedReady(leader)
		ready[group], old[group] = works, leader.Revision != key
		if works || !since.IsZero() && o.Now.Sub(since) >= longBroken {
			down--
		}
	}
	taken := 0
	for group := is; group < was && group < n; group++ {
		if ready[group] && old[group] {
			taken++
		}
	}
	before := 0
	for group := was; group < n; group++ {
		if ready[group] && old[group] {
			before++
		}
	}
	if taken > 0 && taken+before+down > allowed {
		r.Fail(ruleUnavailable, "the partition goes from %d to %d, which takes %d groups down, %d are about to go, and %d are down already; at most %d may be", was, is, taken, before, down, allowed)
	}
}

// longBroken is for how long a group is down that an update does not wait for.
const longBroken = 10 * time.Minute

// observedReady returns whether a group is ready in the snapshot, and since when it is not.
func (r *rules) observedReady(leader *plan.Pod) (since time.Time, ready bool) {
	note := func(pod *plan.Pod) {
		if at := pod.NotReadySince.Time; !pod.Ready && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	note(leader)
	ready = leader.Ready && leader.Phase == corev1.PodRunning && !leader.Deleting
	found := false
	for i := range r.observed.Workers {
		if w := &r.observed.Workers[i]; w.Leader == leader.UID {
			found, ready = true, ready && w.Ready && !w.Deleting
			for j := range w.Pods {
				note(&w.Pods[j])
			}
		}
	}
	alone := leader.Size == 1
	if !found && !alone && since.IsZero() {
		since = leader.Created.Time // it cannot be built, or else soon will be
	}
	return since, ready && (found || alone)
}

// heldUp checks a decision to delete leaders that hold up an update: the StatefulSet controller knows of the update,
// and it takes down no more leaders than it would itself if it did not count those that have been down for very long.
func (r *rules) heldUp(o plan.Observed, p plan.Plan) {
	stuck := map[types.UID]bool{}
	for _, d := range p.DeleteLeaders {
		if d.Event == nil {
			stuck[d.UID] = true
		}
	}
	if len(stuck) == 0 {
		return
	}
	if o.Leader.Status.ObservedGeneration < o.Leader.Generation {
		r.Fail(ruleUnavailable, "leaders are deleted before the statefulset controller knows of the update")
	}
	n, taken := int(ptr.Deref(o.Leader.Spec.Replicas, 1)), 0
	down := n
	for i := range o.Leaders {
		leader := &o.Leaders[i]
		if ordinalNamed(leader.Name) >= n {
			continue
		}
		available := leader.Ready && leader.Phase == corev1.PodRunning && !leader.Deleting
		since, _ := r.observedSince(o, leader)
		if available || !since.IsZero() && o.Now.Sub(since) >= longBroken {
			down--
		}
		if available && stuck[leader.UID] {
			taken++
		}
	}
	if allowed := int(helper.LeaderMaxUnavailable(o.Set)); taken > 0 && taken+down > allowed {
		r.Fail(ruleUnavailable, "%d leaders that hold up an update are deleted while %d are down; at most %d may be", taken, down, allowed)
	}
}

func (r *rules) observedSince(o plan.Observed, leader *plan.Pod) (time.Time, bool) {
	before := r.observed
	defer func() { r.observed = before }()
	r.observed = &o
	return r.observedReady(leader)
}

func ordinalNamed(name string) int {
	_, n := helper.ParentAndOrdinal(name)
	return int(n)
}

// oldAndReady returns how many groups are ready and of another revision.
func (r *rules) oldAndReady(from, to int, key string) (taken int) {
	for group := from; group < to; group++ {
		leader := r.leader(group)
		if leader == nil || !healthy(leader) || leader.Labels[leaderworkersetv1.RevisionKey] == key {
			continue
		}
		if r.ready(leader) {
			taken++
		}
	}
	return taken
}

// ready returns whether all pods of a group are ready.
func (r *rules) ready(leader *corev1.Pod) bool {
	own := []*corev1.Pod{leader}
	if workers := r.workers(leader); workers != nil {
		own = append(own, r.podsOf(workers)...)
	}
	for _, pod := range own {
		if !healthy(pod) {
			return false
		}
	}
	return len(own) == sizeOf(leader)
}
