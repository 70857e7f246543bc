// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// The states of a set, in the order in which they are looked for. They are those of the column PHASE of
// `kubectl get jobsets -o wide`, and work with every server.
const (
	SetTerminating = "Terminating" // it is being deleted
	SetCompleted   = "Completed"   // it finished with success
	SetFailed      = "Failed"      // it finished without
	SetSuspended   = "Suspended"   // spec.suspend is true
	SetRestarting  = "Restarting"  // the condition RestartingJobSet is True
	SetPending     = "Pending"     // no Job has pods, and none has finished
	SetRunning     = "Running"     // every Job is ready or has succeeded
	SetStarting    = "Starting"    // anything else
)

// QueueLabel is the label by which users hand sets over to Kueue, which then decides when they run.
const QueueLabel = "kueue.x-k8s.io/queue-name"

// SetState is what a set does.
func SetState(js *jobsetv1alpha2.JobSet) string {
	wanted, ready, seen := jobCounts(js)
	finished, _ := Finished(js)
	switch {
	case js.DeletionTimestamp != nil:
		return SetTerminating
	case finished != "":
		return finished
	case ptr.Deref(js.Spec.Suspend, false):
		return SetSuspended
	case meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.JobSetRestarting):
		return SetRestarting
	case seen == 0:
		return SetPending
	case ready >= wanted:
		return SetRunning
	}
	return SetStarting
}

// Finished returns the final state of a set, SetCompleted or SetFailed, and its condition, which is nil when there is none. The
// state is "" for a set that has not finished.
func Finished(js *jobsetv1alpha2.JobSet) (string, *metav1.Condition) {
	for _, state := range []string{jobsetv1alpha2.JobSetCompleted, jobsetv1alpha2.JobSetFailed} {
		condition := meta.FindStatusCondition(js.Status.Conditions, state)
		if condition != nil && condition.Status == metav1.ConditionTrue {
			return state, condition
		}
		if js.Status.TerminalState == state {
			return state, nil
		}
	}
	return "", nil
}

// jobCounts returns the number of Jobs that the set wants, of those that are ready or have succeeded, and of those with pods or
// finished.
func jobCounts(js *jobsetv1alpha2.JobSet) (wanted, ready, seen int) {
	for i := range js.Spec.ReplicatedJobs {
		wanted += Replicas(&js.Spec.ReplicatedJobs[i])
	}
	for _, rj := range js.Status.ReplicatedJobsStatus {
		ready += int(rj.Ready + rj.Succeeded)
		seen += int(rj.Ready + rj.Active + rj.Succeeded + rj.Failed)
	}
	return wanted, ready, seen
}

// Replicas is the number of Jobs of a replicatedJob.
func Replicas(rj *jobsetv1alpha2.ReplicatedJob) int { return int(ptr.Deref(rj.Replicas, 1)) }

// NoAttempts is said about a set whose server keeps no history.
const NoAttempts = "this server keeps no history of attempts (status.attempts); it is a feature of jobset-apiserver"

// LacksAttempts tells that the set has run and its server has kept no history of that.
func LacksAttempts(js *jobsetv1alpha2.JobSet) bool {
	if len(js.Status.Attempts) > 0 {
		return false
	}
	_, _, seen := jobCounts(js)
	finished, _ := Finished(js)
	return seen > 0 || js.Status.Restarts > 0 || finished != ""
}

// CurrentAttempt is the newest attempt, also of a set that runs no more; nil for a set that has none.
func CurrentAttempt(js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.Attempt {
	if len(js.Status.Attempts) == 0 {
		return nil
	}
	return &js.Status.Attempts[len(js.Status.Attempts)-1]
}

// RestartLimit is how many counted restarts the failure policy allows, with those that were added by retrying the set. It is
// 0 without a failure policy.
func RestartLimit(js *jobsetv1alpha2.JobSet) int {
	if js.Spec.FailurePolicy == nil {
		return 0
	}
	return int(js.Spec.FailurePolicy.MaxRestarts) + int(js.Status.AddedRestarts)
}

// CountedRestarts is how many restarts, of the set and of single Jobs, have used up the limit.
func CountedRestarts(js *jobsetv1alpha2.JobSet) int {
	sum := int(js.Status.RestartsCountTowardsMax)
	for i := range js.Status.ReplicatedJobsStatus {
		for _, n := range js.Status.ReplicatedJobsStatus[i].JobRestartsCountTowardsMax {
			sum += int(n)
		}
	}
	return sum
}

// End is when the set finished, or now for one that has not.
func End(js *jobsetv1alpha2.JobSet, now time.Time) time.Time {
	state, condition := Finished(js)
	if state == "" {
		return now
	}
	if last := CurrentAttempt(js); last != nil && last.EndTime != nil {
		return last.EndTime.Time
	}
	if condition != nil {
		return condition.LastTransitionTime.Time
	}
	return now
}
