// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// This file holds what users do when sets hold the room of each other. The scheduler binds the pods of a Job one by one, and a set that restarts
// in place ends only when all of its pods run. Sets that have groups of pods, or a queue, do not get there (docs/scheduling.md).

// finishInTurn has a user suspend all sets that have not finished, and resume one after another, if they hold the room of each other. It
// reports whether all have finished then.
func (w *world) finishInTurn() bool {
	waiting := w.unfinishedSets()
	if len(waiting) < 2 || !w.holdRoomOfOthers(waiting) {
		return false
	}
	w.Seen["sets that hold the room of others"]++
	for _, js := range waiting {
		w.suspend(js, true)
	}
	w.rounds(restRounds, 0, func() bool { return false })
	w.rules.atRest()
	for _, js := range waiting {
		w.suspend(w.setNamed(js.Name), false)
		if !w.rounds(finishRounds, 70, func() bool { return finished(&w.setNamed(js.Name).Status) }) {
			return false
		}
	}
	return true
}

// holdRoomOfOthers reports whether each of the sets has pods that wait for a node, and would get one if the pods of the others left. Only the
// present Jobs of the others may hold it.
func (w *world) holdRoomOfOthers(waiting []*jobsetv1alpha2.JobSet) bool {
	return !slices.ContainsFunc(waiting, func(js *jobsetv1alpha2.JobSet) bool {
		others := func(pod *corev1.Pod) bool {
			job := w.jobOf(pod)
			if job == nil {
				return false
			}
			its := w.setOf(job)
			return its != nil && its.Name != js.Name && !finished(&its.Status) && meaningOf(plan.Observed{JobSet: its, Gates: w.gates}, job) == active
		}
		waits := 0
		for _, job := range w.ownJobs(js) {
			for _, pod := range w.podsOf(job) {
				if pod.Spec.NodeName != "" {
					continue
				}
				if node, _ := w.nodeFor(pod, others); node == nil {
					return true
				}
				waits++
			}
		}
		return waits == 0
	})
}

func (w *world) unfinishedSets() []*jobsetv1alpha2.JobSet {
	return slices.DeleteFunc(slices.Clone(w.sets.Objects), func(js *jobsetv1alpha2.JobSet) bool { return finished(&js.Status) })
}

func (w *world) setNamed(name string) *jobsetv1alpha2.JobSet {
	js, _ := w.sets.Get(name)
	return js
}
