// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what is different in histories of sets in the mode auto: sets have a status, and it changes.

const (
	ruleAtRest = "the Service of a large set at rest is given back within a minute, and not taken"
	// largeJobs is how many Jobs sets have in these histories. Most have no pods: what is known of pods does not count.
	largeJobs = 100
	// movesKey is the label with what a set does, which the controller does not know.
	movesKey = "moves"
)

// What a set does.
const (
	movesMany = "many"
	movesFew  = "few"
	movesNone = "none"
)

// inAuto returns whether the mode of a set is auto.
func (e *env) inAuto(js *jobsetv1alpha2.JobSet) bool {
	return e.modeOf(js) == jobsetv1alpha2.ServiceEndpointsAuto
}

func (e *env) modeOf(js *jobsetv1alpha2.JobSet) string {
	if mode := js.Annotations[jobsetv1alpha2.ServiceEndpointsKey]; mode != "" {
		return mode
	}
	return e.mode
}

// asks returns whether the controller is to write the slices of a set. Where few pods move, whoever writes goes on.
func (e *env) asks(js *jobsetv1alpha2.JobSet) bool {
	switch e.modeOf(js) {
	case jobsetv1alpha2.ServiceEndpointsController:
		return true
	case jobsetv1alpha2.ServiceEndpointsAuto:
		svc := e.service()
		return js.Labels[movesKey] == movesMany || js.Labels[movesKey] == movesFew && svc != nil && switched(svc)
	}
	return false
}

// randomMode returns a mode of all sets, or of one.
func (e *env) randomMode(others ...string) string {
	if e.auto && e.Dice.Percent(60) {
		return jobsetv1alpha2.ServiceEndpointsAuto
	}
	return simulation.OneOf(e.Dice, others...)
}

// enlarge makes a new set one that the mode is for.
func (e *env) enlarge(js *jobsetv1alpha2.JobSet) {
	if e.auto {
		js.Spec.ReplicatedJobs[0].Replicas = ptr.To[int32](largeJobs)
		js.Labels = map[string]string{movesKey: movesMany}
	}
}

// liveStatus lets a set go on with its life. It reports whether there is one.
func (e *env) liveStatus() bool {
	js := e.set(name)
	if js == nil || js.DeletionTimestamp != nil || !e.auto {
		return false
	}
	e.sets.Change(js, func(js *jobsetv1alpha2.JobSet) {
		switch n := e.Dice.IntN(100); {
		case ptr.Deref(js.Spec.Suspend, false):
			e.liveSuspended(js, n)
		case len(js.Status.Attempts) == 0 || lastAttempt(js).EndTime != nil:
			begin(js, ptr.Deref(js.Spec.Suspend, false))
		case n < 15:
			js.Spec.Suspend = ptr.To(true)
			movesBy(js, max(active(js), 1)) // counts may not be stored yet
		case n < 30: // the counts stay as they are for a while
			begin(js, true)
		case lastAttempt(js).ReadyTime == nil:
			e.liveStart(js, n)
		case n < 50:
			count(js, e.Dice.IntN(largeJobs+1), largeJobs)
			movesBy(js, largeJobs-ready(js))
		case n < 75:
			count(js, largeJobs-1, largeJobs)
			js.Labels[movesKey] = movesFew
		default:
			count(js, largeJobs, largeJobs)
			js.Labels[movesKey] = movesNone
		}
		e.Note("the set: %s move, %d of %d ready, %d active", js.Labels[movesKey], ready(js), largeJobs, active(js))
	})
	e.Seen["sets in which pods move: "+e.set(name).Labels[movesKey]]++
	return true
}

// liveSuspended lets a suspended set lose its pods, or be resumed.
func (e *env) liveSuspended(js *jobsetv1alpha2.JobSet, n int) {
	if n < 30 {
		js.Spec.Suspend = nil
		if lastAttempt(js) == nil || lastAttempt(js).EndTime != nil || lastAttempt(js).ReadyTime == nil {
			js.Labels[movesKey] = movesMany
			return
		}
		movesBy(js, largeJobs-ready(js))
		return
	}
	left := e.Dice.IntN(active(js) + 1)
	if n < 70 {
		left = 0
	}
	if count(js, 0, left); left == 0 && lastAttempt(js) != nil {
		lastAttempt(js).EndTime = ptr.To(metav1.NewMicroTime(e.Now()))
	}
	if movesBy(js, left); lastAttempt(js) != nil && lastAttempt(js).EndTime == nil {
		movesBy(js, max(left, 1))
	}
}

// liveStart lets more Jobs of an attempt become ready, or all.
func (e *env) liveStart(js *jobsetv1alpha2.JobSet, n int) {
	js.Labels[movesKey] = movesMany
	if n < 60 {
		count(js, e.Dice.IntN(largeJobs), largeJobs)
		return
	}
	count(js, largeJobs, largeJobs)
	lastAttempt(js).ReadyTime = ptr.To(metav1.NewMicroTime(e.Now()))
	js.Labels[movesKey] = movesNone
}

func lastAttempt(js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.Attempt {
	if len(js.Status.Attempts) == 0 {
		return nil
	}
	return &js.Status.Attempts[len(js.Status.Attempts)-1]
}

// begin begins an attempt.
func begin(js *jobsetv1alpha2.JobSet, ends bool) {
	now := ptr.To(metav1.NewMicroTime(time.Unix(1, 0)))
	if last := lastAttempt(js); last != nil && ends {
		last.EndTime = now
	}
	js.Status.Attempts = append(js.Status.Attempts, jobsetv1alpha2.Attempt{Scope: jobsetv1alpha2.ScopeJobSet, RequestTime: now})
	if len(js.Status.Attempts) > jobsetv1alpha2.MaxAttempts {
		js.Status.Attempts = js.Status.Attempts[1:]
	}
	js.Labels[movesKey] = movesMany
}

// count stores how many Jobs are ready, and how many are active.
func count(js *jobsetv1alpha2.JobSet, ready, active int) {
	js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: int32(ready), Active: int32(active)}}
}

func ready(js *jobsetv1alpha2.JobSet) int {
	if len(js.Status.ReplicatedJobsStatus) == 0 {
		return 0
	}
	return int(js.Status.ReplicatedJobsStatus[0].Ready)
}

func active(js *jobsetv1alpha2.JobSet) int {
	if len(js.Status.ReplicatedJobsStatus) == 0 {
		return 0
	}
	return int(js.Status.ReplicatedJobsStatus[0].Active)
}

// movesBy notes what a set does by how many of its pods move.
func movesBy(js *jobsetv1alpha2.JobSet, pods int) {
	switch {
	case pods == 0:
		js.Labels[movesKey] = movesNone
	case pods <= largeJobs/4:
		js.Labels[movesKey] = movesFew
	default:
		js.Labels[movesKey] = movesMany
	}
}

// noteRest notes since when the Service of a set in the mode auto is to be the cluster's.
func (r *rules) noteRest() {
	js := r.set(name)
	switch {
	case js == nil || js.DeletionTimestamp != nil || !r.inAuto(js) || r.asks(js):
		r.restSince = time.Time{}
	case r.restSince.IsZero():
		r.restSince = r.Now()
	}
}

// checkRest checks that nothing is taken at rest.
func (r *rules) checkRest() {
	svc := r.service()
	if svc == nil || !switched(svc) || r.barred("patch service") || r.process.unfilled != nil || !r.calm {
		r.keptSince = time.Time{}
		return
	}
	switch {
	case r.restSince.IsZero():
		r.keptSince = time.Time{}
	case r.keptSince.IsZero():
		r.keptSince = r.Now()
	case r.Since(r.keptSince) > time.Minute:
		r.Fail(ruleAtRest, "it is taken since %s", r.Since(r.keptSince))
	}
}
