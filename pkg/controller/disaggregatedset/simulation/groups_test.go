// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"

	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what becomes of LeaderWorkerSets.

// bad returns whether the groups of a LeaderWorkerSet never become ready.
func bad(lws leaderWorkerSet) bool {
	return strings.HasPrefix(lws.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image, "bad")
}

// someGroups lets something happen to the groups of a LeaderWorkerSet.
func (e *env) someGroups() {
	if len(e.children.Objects) == 0 {
		return
	}
	lws := simulation.OneOf(e.Dice, e.children.Objects...)
	if e.Dice.Percent(e.faults.failing) && lws.Status.ReadyReplicas > 0 {
		e.Seen["groups that fail"]++
		e.Note("a group of %s fails", lws.Name)
		e.children.Change(lws, func(next leaderWorkerSet) { next.Status.ReadyReplicas-- })
		return
	}
	e.grow(lws)
}

// grow brings a LeaderWorkerSet nearer to what it asks for. It reports whether it was not there.
func (e *env) grow(lws leaderWorkerSet) bool {
	want, s := ptr.Deref(lws.Spec.Replicas, 1), lws.Status
	switch {
	case e.hides(lws) || e.stops(lws):
		return false
	case lws.DeletionTimestamp != nil:
		return false
	case s.Replicas != want || s.UpdatedReplicas != want || s.ReadyReplicas > want:
		e.children.Change(lws, func(next leaderWorkerSet) {
			next.Status.Replicas, next.Status.UpdatedReplicas, next.Status.ReadyReplicas = want, want, min(s.ReadyReplicas, want)
		})
	case s.ReadyReplicas < want && !bad(lws) && !e.never:
		e.Note("a group of %s is ready", lws.Name)
		e.children.Change(lws, func(next leaderWorkerSet) { next.Status.ReadyReplicas++ })
	default:
		return false
	}
	return true
}
