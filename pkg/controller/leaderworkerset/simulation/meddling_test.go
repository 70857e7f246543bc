// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what users and machines do to children.

// meddle is what may happen to children.
func (e *env) meddle() {
	switch n := e.Dice.IntN(153); {
	case n >= 145:
		e.replaceAlone()
	case n >= 138:
		e.occupy()
	case n >= 130:
		e.disownSome()
	case n < 40 && e.somePod() != nil:
		pod := e.somePod()
		e.Note("somebody deletes pod %s (%s)", pod.Name, pod.UID)
		e.Seen["pods deleted by others"]++
		e.rules.strike(pod)
		e.deletePod(pod, false)
	case n < 65 && e.somePod() != nil:
		e.vanish(e.somePod())
	case n < 80 && len(e.statefulSets.Objects) > 0:
		sts := simulation.OneOf(e.Dice, e.statefulSets.Objects...)
		e.Note("somebody deletes statefulset %s (%s)", sts.Name, sts.UID)
		e.Seen["statefulsets deleted by others"]++
		e.deleteStatefulSet(sts, e.Dice.Percent(30))
	case n < 90 && len(e.services.Objects) > 0:
		service := simulation.OneOf(e.Dice, e.services.Objects...)
		e.Note("somebody deletes service %s", service.Name)
		e.services.Remove(service.Name)
	case n < 105:
		e.loseNode()
	case n < 112:
		e.editLeaders()
	case n < 116 && len(e.podGroups.Objects) > 0:
		group := simulation.OneOf(e.Dice, e.podGroups.Objects...)
		e.Note("somebody deletes podgroup %s", group.GetName())
		e.podGroups.Remove(group.GetName())
	default:
		e.loseRevision()
	}
}

// vanish removes a pod as if it had never been there, unless something waits for its end.
func (e *env) vanish(pod *corev1.Pod) {
	if len(pod.Finalizers) > 0 {
		return
	}
	e.Note("pod %s (%s) vanishes", pod.Name, pod.UID)
	e.Seen["pods that vanished"]++
	e.rules.strike(pod)
	e.removePod(pod)
}

// loseNode takes a node away with all of its pods: they vanish, or stop being ready, or are deleted.
func (e *env) loseNode() {
	node, how := nodeName(e.Dice.IntN(nodes)), e.Dice.IntN(3)
	e.Note("node %s is lost", node)
	for _, pod := range slices.Clone(e.pods.Objects) {
		if pod.Spec.NodeName != node {
			continue
		}
		e.Seen["pods lost with their node"]++
		switch {
		case how == 0:
			e.vanish(pod)
		case how == 1 && isReady(pod):
			e.changePod(pod, func(p *corev1.Pod) { e.setReady(p, false) })
		case how == 2:
			e.rules.strike(pod)
			e.deletePod(pod, false)
		}
	}
}

// editLeaders lets a user edit the leader StatefulSet.
func (e *env) editLeaders() {
	sts := e.leaders()
	if sts == nil || sts.DeletionTimestamp != nil {
		return
	}
	next := sts.DeepCopy()
	next.Generation++
	switch e.Dice.IntN(3) {
	case 0:
		next.Spec.Replicas = ptr.To(int32(e.Dice.IntN(7)))
	case 1:
		next.Spec.ServiceName = "edited"
	default:
		next.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(int32(e.Dice.IntN(7)))
	}
	e.rules.struck = map[types.UID]bool{}
	e.Note("somebody edits statefulset %s: %s", name, describeLeader(next))
	e.Seen["leader statefulsets edited by others"]++
	e.statefulSets.Put(next)
}

// loseRevision lets a user delete a revision. It keeps revisions that groups need to be rebuilt: former ones that
// groups have, and all of them while a partition keeps groups from the update, because these are created at a former one.
func (e *env) loseRevision() {
	sts, set := e.leaders(), e.set()
	if sts == nil || len(e.revisions.Objects) == 0 {
		return
	}
	revision := simulation.OneOf(e.Dice, e.revisions.Objects...)
	key := revision.Labels[leaderworkersetv1.RevisionKey]
	current := key == sts.Labels[leaderworkersetv1.RevisionKey]
	used := slices.ContainsFunc(e.pods.Objects, func(pod *corev1.Pod) bool { return pod.Labels[leaderworkersetv1.RevisionKey] == key })
	switch {
	case current && helper.Partition(set) == 0:
		e.Seen["revisions lost in use"]++
		e.lostInUse = true
	case current || used || helper.Partition(set) > 0 || partitionOf(sts) > 0:
		return
	}
	e.deleteRevision(revision)
}

// loseCurrentRevision lets a user delete the revision of the spec.
func (e *env) loseCurrentRevision(set *leaderworkersetv1.LeaderWorkerSet) {
	sts := e.leaders()
	for _, revision := range e.revisions.Objects {
		if sts != nil && revision.Labels[leaderworkersetv1.RevisionKey] == sts.Labels[leaderworkersetv1.RevisionKey] && helper.SameRevision(set, revision.Data.Raw) {
			e.deleteRevision(revision)
			return
		}
	}
}

func (e *env) deleteRevision(revision *appsv1.ControllerRevision) {
	e.Note("somebody deletes revision %s", revision.Name)
	e.Seen["revisions deleted by others"]++
	e.revisions.Remove(revision.Name)
}

// repair lets a user give a set that may have lost a revision in use a template that works, and lets all groups have it.
func (e *env) repair(set *leaderworkersetv1.LeaderWorkerSet) {
	next := set.DeepCopy()
	next.Spec.Paused, next.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = nil, ptr.To[int32](0)
	next.Spec.LeaderWorkerTemplate.WorkerTemplate = podTemplate(fmt.Sprint("b", e.sets.Versions.Last))
	e.Note("user repairs the set: %s", describeSpec(next))
	e.put(set, next, "edits")
}
