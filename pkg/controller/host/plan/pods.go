// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
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

// Trouble returns what the condition of a type says about the pods, once they have waited for some time. Of is whose pods they are, such as
// "of job 0"; it may be empty. The message stays while the number of pods does: the words of the scheduler change with each try.
func (u Unschedulable) Trouble(conditionType, of string, after time.Duration) Trouble {
	if u.Pods == 0 {
		return Trouble{Type: conditionType, Over: true, Reason: reasons.PodsScheduled, Message: "no pod waits for a node"}
	}
	head := strings.TrimSpace(CountPods(u.Pods)+" "+of) + " cannot be scheduled: "
	return Trouble{Type: conditionType, Reason: reasons.Unschedulable, Message: head + u.Reason, Head: head, Since: u.Since, After: after}
}

// PodsTrouble returns what the condition of a type says about pods that the API refuses to a controller of the cluster, once some have been
// refused for some time. The message begins with head, and stays while that and the reason do: others use quotas, so that each refusal may
// have other numbers.
func (r Refusal) PodsTrouble(conditionType, head string, since, now time.Time) Trouble {
	return Trouble{Type: conditionType, Reason: r.Reason, Message: head + r.Message, Head: head, Since: since, After: PodsRefusedAfter,
		Doubtful: now.Sub(r.At) > RefusedLately, Again: PodsRefusedAgain}
}

// NoPodsRefused ends that trouble.
func NoPodsRefused(conditionType string) Trouble {
	return Trouble{Type: conditionType, Over: true, Reason: reasons.PodsCreated, Message: "no pods are refused"}
}

// Newest returns the newest of several refusals of pods, the first of those if there are some of one time.
func Newest(refusals []Refusal) Refusal {
	return slices.MaxFunc(refusals, func(a, b Refusal) int { return a.At.Compare(b.At) })
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

// CountPods returns a number of pods in words.
func CountPods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
