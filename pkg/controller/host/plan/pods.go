// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"
)

// Pods may wait for a node for some time before that is reported. Most wait for a moment, while others leave. Each time is part of the
// documented behavior of its kind, in docs/controller.md and docs/reference/batch.md. No document says why the times differ.
const (
	// JobSetUnschedulableAfter is the time for the pods of a JobSet.
	JobSetUnschedulableAfter = 15 * time.Second
	// LeaderWorkerSetUnschedulableAfter is the time for the pods of a LeaderWorkerSet.
	LeaderWorkerSetUnschedulableAfter = 15 * time.Second
	// StepUnschedulableAfter is the time for the pods of a step of a SequentialJob.
	StepUnschedulableAfter = 30 * time.Second
)

// Unschedulable are the pods of an owner for which the scheduler finds no node.
type Unschedulable struct {
	// Pods is their number.
	Pods int
	// Reason is why one of them does not fit, in the words of the scheduler.
	Reason string
	// Since is since when there are any.
	Since time.Time
}

// Rules about pods that the API refuses to the controllers of the cluster.
const (
	// PodsRefusedAfter is how long pods are refused before that is reported. A quota may be free in a moment, when pods have stopped.
	PodsRefusedAfter = 5 * time.Second
	// RefusedLately is how old a refusal may be to begin with. An older one may be about pods that exist since; a process
	// that has just started does not know.
	RefusedLately = 2 * time.Minute
	// PodsRefusedAgain is how long a refusal is taken for true before it is looked at again, without any event: an event
	// does not say when its cause is gone.
	PodsRefusedAgain = 5 * time.Minute
)

// ReportsRefused returns whether refused pods are reported, or else when to decide that again; 0 for never. known means that they are
// reported already. since is since when any are refused, and at is the time of the last refusal.
func ReportsRefused(known bool, since, at, now time.Time) (reports bool, due time.Duration) {
	switch left := PodsRefusedAfter - now.Sub(since); {
	case known:
		return true, 0
	case now.Sub(at) > RefusedLately:
		return false, 0
	case left > 0:
		return false, left
	}
	return true, 0
}

// CountPods returns a number of pods in words.
func CountPods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
