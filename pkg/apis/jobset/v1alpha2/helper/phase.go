// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// The phases of a set, in the order of precedence: the first that applies is the phase.
const (
	PhaseUnreadable  = unreadable.Phase // the server cannot read it
	PhaseTerminating = "Terminating"    // it is being deleted
	PhaseCompleted   = "Completed"      // it finished with success
	PhaseFailed      = "Failed"         // it finished without success
	PhaseSuspended   = "Suspended"      // spec.suspend is true
	PhaseRestarting  = "Restarting"     // the condition RestartingJobSet is True: not all Jobs of the new attempt are ready
	PhasePending     = "Pending"        // no Job has pods, and none has finished
	PhaseRunning     = "Running"        // every Job is ready or has succeeded
	PhaseStarting    = "Starting"       // otherwise: some Jobs are not ready, at first or after pods were replaced
)

// Phases are all phases of sets that can be read.
var Phases = []string{
	PhaseTerminating, PhaseCompleted, PhaseFailed, PhaseSuspended, PhaseRestarting, PhasePending, PhaseRunning, PhaseStarting,
}

// Phase returns the phase of a set.
func Phase(js *jobsetv1alpha2.JobSet) string {
	counts := CountJobs(js)
	switch finished, _ := Finished(js); {
	case unreadable.Is(js):
		return PhaseUnreadable
	case js.DeletionTimestamp != nil:
		return PhaseTerminating
	case finished != "":
		return finished
	case Suspended(js):
		return PhaseSuspended
	case meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.JobSetRestarting):
		return PhaseRestarting
	case counts.Seen == 0:
		return PhasePending
	case counts.Up >= counts.Wanted:
		return PhaseRunning
	}
	return PhaseStarting
}

// Finished returns PhaseCompleted or PhaseFailed and the condition of that type, which is nil if only the terminal state
// does. The phase is "" for a set that has not finished.
func Finished(js *jobsetv1alpha2.JobSet) (string, *metav1.Condition) {
	for _, phase := range []string{PhaseCompleted, PhaseFailed} { // also the types of the conditions and the terminal states
		if c := meta.FindStatusCondition(js.Status.Conditions, phase); c != nil && c.Status == metav1.ConditionTrue {
			return phase, c
		}
		if js.Status.TerminalState == phase {
			return phase, nil
		}
	}
	return "", nil
}

// Suspended returns whether the set is to be suspended.
func Suspended(js *jobsetv1alpha2.JobSet) bool { return ptr.Deref(js.Spec.Suspend, false) }

// Held returns whether the controller leaves the set alone until a user resumes or deletes it.
func Held(js *jobsetv1alpha2.JobSet) bool {
	return meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.Held)
}

// JobCounts are numbers of Jobs of a set.
type JobCounts struct {
	// Wanted is the number of Jobs that the spec asks for.
	Wanted int64
	// Up is the number of Jobs that are ready or have succeeded.
	Up int64
	// Seen is the number of Jobs that have pods or have finished.
	Seen int64
}

// CountJobs sums up the counters of the status. Every view takes the numbers of Jobs from here, so that all show the same, also
// after the Jobs of a finished set are gone.
func CountJobs(js *jobsetv1alpha2.JobSet) JobCounts {
	counts := JobCounts{Wanted: TotalReplicas(js)}
	for i := range js.Status.ReplicatedJobsStatus {
		counts.add(&js.Status.ReplicatedJobsStatus[i])
	}
	return counts
}

// CountReplicatedJob returns the counters of one replicatedJob; Wanted is 0 for one that the spec does not have.
func CountReplicatedJob(js *jobsetv1alpha2.JobSet, name string) (counts JobCounts) {
	for i := range js.Spec.ReplicatedJobs {
		if rj := &js.Spec.ReplicatedJobs[i]; rj.Name == name {
			counts.Wanted = int64(Replicas(rj))
		}
	}
	for i := range js.Status.ReplicatedJobsStatus {
		if rj := &js.Status.ReplicatedJobsStatus[i]; rj.Name == name {
			counts.add(rj)
		}
	}
	return counts
}

func (c *JobCounts) add(rj *jobsetv1alpha2.ReplicatedJobStatus) {
	c.Up += int64(rj.Ready) + int64(rj.Succeeded)
	c.Seen += int64(rj.Ready) + int64(rj.Active) + int64(rj.Succeeded) + int64(rj.Failed)
}

// Summary is the state of a set, in the words and numbers that every view of it shows: lists, the commands of the plugin, metrics.
// It follows from the set alone.
type Summary struct {
	// Phase is the state in one word.
	Phase string
	// Reason is why the set is in the phase, in one word, and Message in a sentence. Both may be empty.
	Reason, Message string
	// Jobs are the numbers of its Jobs.
	Jobs JobCounts
	// Attempt is the number of the attempt that runs, ran last, or is to run first.
	Attempt int64
	// LastAttempt is the number of the last attempt that it can reach as of now.
	LastAttempt int64
}

// Summarize returns the state of a set.
func Summarize(js *jobsetv1alpha2.JobSet) Summary {
	s := Summary{Phase: Phase(js), Jobs: CountJobs(js)}
	s.Reason, s.Message = reasonOf(js, s.Phase)
	s.Attempt, s.LastAttempt = AttemptNumbers(js)
	return s
}

// AttemptNumbers returns the number of the current attempt, and that of the last attempt which the set can reach as of now: one
// more for each restart that is left. Restarts that do not count raise both numbers. Without a failure policy nothing is left.
// A set whose attempts are not recorded has had one for each restart of the whole set, and the first one.
func AttemptNumbers(js *jobsetv1alpha2.JobSet) (current, last int64) {
	status := &js.Status
	restarts := max(int64(status.Restarts), int64(ptr.Deref(status.CurrentInPlaceRestartAttempt, 0)))
	current = restarts + 1
	if newest := CurrentAttempt(status); newest != nil {
		current = int64(newest.Number)
	}
	if js.Spec.FailurePolicy == nil {
		return current, current
	}
	// Restarts in place use up the limit, but are counted elsewhere.
	inPlace := restarts - int64(status.Restarts)
	return current, current + max(RestartLimit(js)-CountedRestarts(status)-inPlace, 0)
}

// Ended returns whether Jobs and pods of a set that do not exist are not to be expected: it has finished, or is being deleted.
func Ended(js *jobsetv1alpha2.JobSet) bool {
	finished, _ := Finished(js)
	return finished != "" || js.DeletionTimestamp != nil
}
