// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// The phases of a set, in the order in which they are looked for: the first that fits is shown.
const (
	phaseTerminating = "Terminating" // it is being deleted
	phaseCompleted   = "Completed"   // it finished with success
	phaseFailed      = "Failed"      // it finished without
	phaseSuspended   = "Suspended"   // spec.suspend is true
	phaseRestarting  = "Restarting"  // the condition RestartingJobSet is True: not all Jobs of the new attempt are ready
	phasePending     = "Pending"     // no Job has pods, and none has finished
	phaseRunning     = "Running"     // every Job is ready or has succeeded
	phaseStarting    = "Starting"    // anything else: some Jobs are not ready, at first or after pods were replaced
)

// summary is what the wide columns show.
type summary struct {
	phase, ready, attempt, reason, duration string
}

// summarize derives the wide columns from the object and the time.
func summarize(js *jobset.JobSet, now time.Time) summary {
	total, counted := countJobs(js)
	phase, condition := phaseOf(js, total, counted)
	switch phase {
	case phasePending, phaseStarting, phaseRestarting:
		if meta.IsStatusConditionTrue(js.Status.Conditions, jobset.ConditionNameConflict) {
			condition = jobset.ConditionNameConflict // what the missing Jobs wait for
		}
	}
	s := summary{
		phase:    phase,
		ready:    fmt.Sprintf("%d/%d", counted.ready, total),
		attempt:  attempt(js),
		duration: elapsed(js, now),
	}
	if c := meta.FindStatusCondition(js.Status.Conditions, condition); c != nil && c.Status == metav1.ConditionTrue {
		s.reason = c.Reason
	}
	return s
}

// phaseOf returns the phase and the type of the condition that explains it.
func phaseOf(js *jobset.JobSet, total int64, counted jobCounts) (phase, condition string) {
	conditions := js.Status.Conditions
	switch finished := finishedAs(js); {
	case js.DeletionTimestamp != nil:
		return phaseTerminating, finished
	case finished != "":
		return finished, finished
	case ptr.Deref(js.Spec.Suspend, false):
		return phaseSuspended, jobset.ConditionSuspended
	case meta.IsStatusConditionTrue(conditions, jobset.ConditionRestarting):
		return phaseRestarting, jobset.ConditionRestarting
	case counted.seen == 0:
		return phasePending, jobset.ConditionStarting
	case counted.ready >= total:
		return phaseRunning, ""
	}
	return phaseStarting, jobset.ConditionStarting
}

// finishedAs returns the final state of a set, which is also the type of its condition, or "".
func finishedAs(js *jobset.JobSet) string {
	conditions := js.Status.Conditions
	switch {
	case js.Status.TerminalState == phaseCompleted || meta.IsStatusConditionTrue(conditions, jobset.ConditionCompleted):
		return phaseCompleted
	case js.Status.TerminalState == phaseFailed || meta.IsStatusConditionTrue(conditions, jobset.ConditionFailed):
		return phaseFailed
	}
	return ""
}

// jobCounts sums the counters of a status up: Jobs that are ready or have succeeded, and Jobs seen with pods or finished.
type jobCounts struct {
	ready, seen int64
}

func countJobs(js *jobset.JobSet) (total int64, counted jobCounts) {
	for i := range js.Spec.ReplicatedJobs {
		total += int64(ptr.Deref(js.Spec.ReplicatedJobs[i].Replicas, 1))
	}
	for _, rj := range js.Status.ReplicatedJobsStatus {
		counted.ready += int64(rj.Ready) + int64(rj.Succeeded)
		counted.seen += int64(rj.Ready) + int64(rj.Active) + int64(rj.Succeeded) + int64(rj.Failed)
	}
	return total, counted
}

// attempt is the number of the current attempt, of the attempts that the set can reach as of now: one more for each restart
// that is left. Restarts that do not count raise both numbers. Without a failure policy nothing is left. A set whose
// attempts were not recorded yet has had one for each restart of the whole set, and the first one.
func attempt(js *jobset.JobSet) string {
	status := &js.Status
	restarts := max(int64(status.Restarts), int64(ptr.Deref(status.CurrentInPlaceRestartAttempt, 0)))
	number := restarts + 1
	if current := actions.Current(status); current != nil {
		number = int64(current.Number)
	}
	left := int64(0)
	if js.Spec.FailurePolicy != nil {
		// Restarts in place use up the limit, but are counted elsewhere.
		inPlace := restarts - int64(status.Restarts)
		left = max(actions.MaxRestarts(js)-actions.RestartsCounted(status)-inPlace, 0)
	}
	return fmt.Sprintf("%d/%d", number, number+left)
}

// elapsed is the time that a set has run, or "" while it is suspended.
func elapsed(js *jobset.JobSet, now time.Time) string {
	start := js.CreationTimestamp.Time
	if resumed := meta.FindStatusCondition(js.Status.Conditions, jobset.ConditionSuspended); resumed != nil && resumed.Status == metav1.ConditionFalse {
		start = resumed.LastTransitionTime.Time
	}
	if finished := finishedAs(js); finished != "" {
		if c := meta.FindStatusCondition(js.Status.Conditions, finished); c != nil {
			return humanDuration(c.LastTransitionTime.Sub(start))
		}
		return ""
	}
	if ptr.Deref(js.Spec.Suspend, false) || start.IsZero() {
		return ""
	}
	return humanDuration(now.Sub(start))
}
