// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// RestartLimit returns the number of counted restarts that a set may have: maxRestarts of its failure policy, and the
// restarts that retries added. It is 0 without a failure policy.
func RestartLimit(js *jobsetv1alpha2.JobSet) int64 {
	if js.Spec.FailurePolicy == nil {
		return 0
	}
	return int64(js.Spec.FailurePolicy.MaxRestarts) + int64(js.Status.AddedRestarts)
}

// CountedRestarts returns the number of restarts so far, of the set and of single Jobs, that count towards the limit.
func CountedRestarts(status *jobsetv1alpha2.JobSetStatus) int64 {
	n := int64(status.RestartsCountTowardsMax)
	for i := range status.ReplicatedJobsStatus {
		for _, restarts := range status.ReplicatedJobsStatus[i].JobRestartsCountTowardsMax {
			n += int64(restarts)
		}
	}
	return n
}

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

// Goodput is what the goodput of a set follows from: the share of its life in which all of its Jobs were ready. Its life
// begins with its creation, so that times in queues and in suspension count, and lasts until its end or the present.
type Goodput struct {
	created, ended time.Time
	// ready is how long all Jobs were ready in attempts that have ended; readySince is when they became ready in the one that runs.
	ready      time.Duration
	readySince time.Time
}

// GoodputOf returns what the goodput of a set follows from.
func GoodputOf(js *jobsetv1alpha2.JobSet) Goodput {
	g := Goodput{
		created: js.CreationTimestamp.Time, ended: EndTime(js), ready: time.Duration(js.Status.ReadyMilliseconds) * time.Millisecond,
	}
	if a := RunningAttempt(&js.Status); a != nil && a.ReadyTime != nil {
		g.readySince = a.ReadyTime.Time
	}
	return g
}

// At returns for how long all Jobs have been ready, and for how long the set has lived.
func (g Goodput) At(now time.Time) (ready, life time.Duration) {
	if !g.ended.IsZero() {
		now = g.ended
	}
	ready = g.ready
	if !g.readySince.IsZero() {
		ready += max(0, now.Sub(g.readySince))
	}
	life = max(0, now.Sub(g.created))
	return min(ready, life), life
}

// Ratio returns the goodput, from 0 to 1. It is 0 for a set that has just been created.
func (g Goodput) Ratio(now time.Time) float64 {
	ready, life := g.At(now)
	if life == 0 {
		return 0
	}
	return ready.Seconds() / life.Seconds()
}
