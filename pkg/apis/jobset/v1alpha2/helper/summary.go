// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

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
