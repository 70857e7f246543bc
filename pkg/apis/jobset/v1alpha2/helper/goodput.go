// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"math"
	"time"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Goodput is the share of the life of a set in which it did work that a checkpoint has kept. The job reports the steps of its
// checkpoints. Each report adds the ready time since the report before it in the same attempt, or since the attempt was ready:
// what an attempt does after its last report is lost when it ends. A report of a lower step than the last one takes back the
// time of the steps in between, because the job does their work again; within one attempt, time is spread evenly over steps.

// RecordCheckpoint records in the running attempt that the job has reported a checkpoint of the step. It does nothing if no
// attempt runs.
func RecordCheckpoint(status *jobsetv1alpha2.JobSetStatus, step int64, now time.Time) {
	a := RunningAttempt(status)
	if a == nil {
		return
	}
	at := NotBeforeAttempts(status, now)
	if last := LastCheckpoint(status); last != nil && step < last.Step {
		status.GoodMilliseconds = goodAt(status, step)
	} else {
		status.GoodMilliseconds += sinceCheckpoint(a, at.Time)
	}
	a.Checkpoint = &jobsetv1alpha2.Checkpoint{Step: step, Time: at, GoodMilliseconds: status.GoodMilliseconds}
}

// LastCheckpoint returns the checkpoint that was reported last in the listed attempts; nil if none was.
func LastCheckpoint(status *jobsetv1alpha2.JobSetStatus) *jobsetv1alpha2.Checkpoint {
	for i := len(status.Attempts) - 1; i >= 0; i-- {
		if c := status.Attempts[i].Checkpoint; c != nil {
			return c
		}
	}
	return nil
}

// sinceCheckpoint returns for how many milliseconds an attempt was ready since its last report, or since it became ready.
func sinceCheckpoint(a *jobsetv1alpha2.Attempt, until time.Time) int64 {
	if a.ReadyTime == nil {
		return 0
	}
	from := a.ReadyTime.Time
	if c := a.Checkpoint; c != nil && c.Time != nil && c.Time.After(from) {
		from = c.Time.Time
	}
	return max(0, until.Sub(from).Milliseconds())
}

// goodAt returns the good time up to a step that is lower than the last one: between two known checkpoints in proportion to the
// steps. A job whose first checkpoints are no longer listed is taken to have begun at step 0.
func goodAt(status *jobsetv1alpha2.JobSetStatus, step int64) int64 {
	above, below := *LastCheckpoint(status), jobsetv1alpha2.Checkpoint{}
	for i := len(status.Attempts) - 1; i >= 0; i-- {
		c := ptr.Deref(status.Attempts[i].Checkpoint, above)
		if c.Step >= above.Step || c.GoodMilliseconds > above.GoodMilliseconds {
			continue // not on the way to the checkpoint above: it was rolled back
		}
		if c.Step <= step {
			below = c
			break
		}
		above = c
	}
	part := float64(step-below.Step) / float64(above.Step-below.Step)
	return below.GoodMilliseconds + int64(math.Round(part*float64(above.GoodMilliseconds-below.GoodMilliseconds)))
}

// Goodput is what the goodput of a set follows from.
type Goodput struct {
	share ReadyShare
	good  time.Duration
}

// GoodputOf returns what the goodput of a set follows from; false for a set whose job reports no checkpoints. All work of the
// attempt in which a set completed counts: its result is there.
func GoodputOf(js *jobsetv1alpha2.JobSet) (Goodput, bool) {
	if _, reports := js.Annotations[jobsetv1alpha2.CheckpointStepKey]; !reports || len(js.Status.Attempts) == 0 {
		return Goodput{}, false
	}
	good := js.Status.GoodMilliseconds
	if a := CurrentAttempt(&js.Status); a.Outcome == jobsetv1alpha2.OutcomeCompleted && a.EndTime != nil {
		good += sinceCheckpoint(a, a.EndTime.Time)
	}
	return Goodput{share: ReadyShareOf(js), good: time.Duration(good) * time.Millisecond}, true
}

// At returns how long the set has done work that was kept, and for how long it has lived.
func (g Goodput) At(now time.Time) (good, life time.Duration) {
	ready, life := g.share.At(now)
	return min(g.good, ready), life
}

// Ratio returns the goodput, from 0 to 1.
func (g Goodput) Ratio(now time.Time) float64 {
	good, life := g.At(now)
	if life == 0 {
		return 0
	}
	return good.Seconds() / life.Seconds()
}
