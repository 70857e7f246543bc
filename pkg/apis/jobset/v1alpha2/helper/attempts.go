// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// The history of a set: one attempt runs while the set runs, and none at other times. An attempt that has ended is never
// changed again.

// CurrentAttempt returns the newest attempt, whether or not it has ended; nil if none was recorded yet.
func CurrentAttempt(status *jobsetv1alpha2.JobSetStatus) *jobsetv1alpha2.Attempt {
	if n := len(status.Attempts); n > 0 {
		return &status.Attempts[n-1]
	}
	return nil
}

// RunningAttempt returns the attempt that runs; nil if none does.
func RunningAttempt(status *jobsetv1alpha2.JobSetStatus) *jobsetv1alpha2.Attempt {
	if last := CurrentAttempt(status); last != nil && last.EndTime == nil {
		return last
	}
	return nil
}

// BeginAttempt appends an attempt and returns it. Its number follows that of the newest attempt; the given number is used
// if it is the first attempt to be recorded. It begins now, unless it has a request time.
func BeginAttempt(status *jobsetv1alpha2.JobSetStatus, a jobsetv1alpha2.Attempt, now time.Time) *jobsetv1alpha2.Attempt {
	if a.RequestTime == nil {
		a.RequestTime = NotBeforeAttempts(status, now)
	}
	if last := CurrentAttempt(status); last != nil {
		a.Number = last.Number + 1
	}
	a.User, a.Reason = text.Truncate(text.Line(a.User), jobsetv1alpha2.MaxAttemptUserBytes), firstCharacters(a.Reason)
	status.Attempts = append(status.Attempts, a)
	if n := len(status.Attempts); n > jobsetv1alpha2.MaxAttempts {
		status.Attempts = append([]jobsetv1alpha2.Attempt(nil), status.Attempts[n-jobsetv1alpha2.MaxAttempts:]...)
	}
	return CurrentAttempt(status)
}

// EndAttempt ends the attempt that runs and returns it; nil if none runs. The user is empty if no user asked for the end.
func EndAttempt(status *jobsetv1alpha2.JobSetStatus, outcome jobsetv1alpha2.AttemptOutcome, user, reason string,
	now time.Time) *jobsetv1alpha2.Attempt {
	a := RunningAttempt(status)
	if a == nil {
		return nil
	}
	a.EndTime, a.Outcome = NotBeforeAttempts(status, now), outcome
	a.EndUser, a.EndReason = text.Truncate(text.Line(user), jobsetv1alpha2.MaxAttemptUserBytes), firstCharacters(reason)
	if a.ReadyTime != nil {
		status.ReadyMilliseconds += a.EndTime.Sub(a.ReadyTime.Time).Milliseconds()
	}
	return a
}

// NotBeforeAttempts returns the given time, or the latest time in the history if that is later: clocks of different machines
// differ, and the times of attempts must not go backwards. The result is in microseconds, as it is stored.
func NotBeforeAttempts(status *jobsetv1alpha2.JobSetStatus, now time.Time) *metav1.MicroTime {
	at := metav1.NewMicroTime(now.Truncate(time.Microsecond))
	if last := CurrentAttempt(status); last != nil {
		times := []*metav1.MicroTime{last.RequestTime, last.CreateTime, last.ReadyTime, last.EndTime}
		if last.Checkpoint != nil {
			times = append(times, last.Checkpoint.Time)
		}
		for _, earlier := range times {
			if earlier != nil && at.Before(earlier) {
				at = *earlier
			}
		}
	}
	return &at
}

// RestartExecution begins the execution that follows a restart of the whole set, and counts the restart. Executions are
// counted on request. The start time is nil where the set has no deadline to measure.
func RestartExecution(status *jobsetv1alpha2.JobSetStatus, countExecutions bool, start *metav1.Time) {
	if countExecutions {
		// A set that ran before executions were counted has had one for each restart, and the first one.
		status.ExecutionAttempts = ptr.To(ptr.Deref(status.ExecutionAttempts, status.Restarts) + 1)
	}
	status.StartTime = start
	status.Restarts++
}

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
