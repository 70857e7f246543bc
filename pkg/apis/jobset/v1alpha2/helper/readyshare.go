// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// EndTime returns when a set finished; zero for one that has not, or whose time is unknown. It is the time of the condition
// that ended the set, or the end of the last attempt if that is later, as it is more exact than the seconds of a condition.
// An attempt may end long before its set, which was suspended then.
func EndTime(js *jobsetv1alpha2.JobSet) (end time.Time) {
	phase, condition := Finished(js)
	if phase == "" {
		return time.Time{}
	}
	if condition != nil {
		end = condition.LastTransitionTime.Time
	}
	if last := CurrentAttempt(&js.Status); last != nil && last.EndTime != nil && last.EndTime.After(end) {
		end = last.EndTime.Time
	}
	return end
}

// ReadyShare is what the ready share of a set follows from: the share of its life in which all of its Jobs were ready. Its life
// begins with its creation, so that times in queues and in suspension count, and lasts until its end or the present. It is the
// one source of the metric jobset_ready_ratio and of what the plugin shows.
type ReadyShare struct {
	created, ended time.Time
	// ready is how long all Jobs were ready in attempts that have ended; readySince is when they became ready in the one that runs.
	ready      time.Duration
	readySince time.Time
}

// ReadyShareOf returns what the ready share of a set follows from.
func ReadyShareOf(js *jobsetv1alpha2.JobSet) ReadyShare {
	r := ReadyShare{
		created: js.CreationTimestamp.Time, ended: EndTime(js), ready: time.Duration(js.Status.ReadyMilliseconds) * time.Millisecond,
	}
	if a := RunningAttempt(&js.Status); a != nil && a.ReadyTime != nil {
		r.readySince = a.ReadyTime.Time
	}
	return r
}

// At returns for how long all Jobs have been ready, and for how long the set has lived.
func (r ReadyShare) At(now time.Time) (ready, life time.Duration) {
	if !r.ended.IsZero() {
		now = r.ended
	}
	ready = r.ready
	if !r.readySince.IsZero() {
		ready += max(0, now.Sub(r.readySince))
	}
	life = max(0, now.Sub(r.created))
	return min(ready, life), life
}

// Ratio returns the share, from 0 to 1. It is 0 for a set that has just been created.
func (r ReadyShare) Ratio(now time.Time) float64 {
	ready, life := r.At(now)
	if life == 0 {
		return 0
	}
	return ready.Seconds() / life.Seconds()
}
