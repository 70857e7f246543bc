// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// execution is the current or the last execution of a set.
//
// Its number is the number of its oldest listed attempt. Attempts are numbered without gaps, and each execution begins with an attempt of
// its own, so that no two executions have the same number, and a later one has a higher number. The attempts of a set that has ended do not
// change, so that the number does not change either. While a set runs, its number grows when the first attempt of the execution is dropped
// from the list.
type execution struct {
	number int32
	// attempts are its listed attempts, and before are listed attempts of earlier executions.
	attempts, before []jobsetv1alpha2.Attempt
	// retried means that the first of the attempts began the execution, and that there was one before it.
	retried bool
}

// executionOf returns the execution of a set; nil if it has not begun.
func executionOf(js *jobsetv1alpha2.JobSet) *execution {
	all := js.Status.Attempts
	if len(all) == 0 {
		if !ran(js) {
			return nil
		}
		return &execution{number: 1} // a controller that keeps no attempts
	}
	first, retried := 0, false
	for i := range all {
		if all[i].Trigger == jobsetv1alpha2.TriggerRetry || i > 0 && isFinal(all[i-1].Outcome) {
			first, retried = i, true
		}
	}
	if c := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.Retried); c != nil {
		i := resumed(all, c)
		if i == len(all) {
			return nil // it was retried while it was suspended, and was not resumed
		}
		if i >= first {
			first, retried = i, true
		}
	}
	return &execution{number: max(all[first].Number, 1), attempts: all[first:], before: all[:first], retried: retried}
}

// isFinal returns whether an outcome is the end of an execution.
func isFinal(outcome jobsetv1alpha2.AttemptOutcome) bool {
	switch outcome {
	case jobsetv1alpha2.OutcomeCompleted, jobsetv1alpha2.OutcomeFailed, jobsetv1alpha2.OutcomeCancelled:
		return true
	}
	return false
}

// resumed returns the index of the attempt with which a set was resumed after it was retried while it was suspended; -1 if that attempt is
// no longer listed, and the number of attempts if there is none yet. The condition is True from the retry until the controller sees that
// the set is resumed, which is after the attempt began.
func resumed(all []jobsetv1alpha2.Attempt, c *metav1.Condition) int {
	if c.Status == metav1.ConditionTrue {
		for i := range all {
			if at := all[i].RequestTime; at != nil && !at.Time.Before(c.LastTransitionTime.Time) {
				return i
			}
		}
		return len(all)
	}
	for i := len(all) - 1; i >= 0; i-- {
		at := all[i].RequestTime // the condition is in seconds
		if all[i].Trigger == jobsetv1alpha2.TriggerResume && at != nil && at.Time.Before(c.LastTransitionTime.Add(time.Second)) {
			return i
		}
	}
	return -1
}

// ran returns whether a set whose attempts are not recorded has begun to run.
func ran(js *jobsetv1alpha2.JobSet) bool {
	finished, _ := helper.Finished(js)
	return finished == helper.PhaseCompleted || js.Status.StartTime != nil || helper.CountJobs(js).Seen > 0
}

// complete returns whether all attempts of the execution are listed.
func (e *execution) complete() bool {
	return e.retried || len(e.attempts) > 0 && e.attempts[0].Number == 1
}

// begin returns when the execution began, as far as its attempts are known.
func (e *execution) begin(js *jobsetv1alpha2.JobSet) time.Time {
	switch {
	case len(e.attempts) > 0 && e.attempts[0].RequestTime != nil:
		return e.attempts[0].RequestTime.Time
	case len(e.attempts) == 0 && js.Status.StartTime != nil:
		return js.Status.StartTime.Time
	}
	return js.CreationTimestamp.Time
}

// count returns the number of attempts. If the first ones are no longer listed, it is not known whether there was a retry among them: it is
// taken that there was none.
func (e *execution) count(js *jobsetv1alpha2.JobSet) int32 {
	if n := len(e.attempts); n > 0 && e.complete() {
		return int32(n)
	}
	current, _ := helper.AttemptNumbers(js)
	return int32(min(current, math.MaxInt32))
}

// restarts returns the number of restarts, of the set and of parts of it.
func (e *execution) restarts(js *jobsetv1alpha2.JobSet) int32 {
	var n int64
	if e.complete() {
		for i := range e.attempts {
			switch e.attempts[i].Trigger {
			case jobsetv1alpha2.TriggerFailurePolicy, jobsetv1alpha2.TriggerRequested:
				n++
			}
		}
		return int32(n)
	}
	n = int64(max(js.Status.Restarts, ptr.Deref(js.Status.CurrentInPlaceRestartAttempt, 0)))
	for i := range js.Status.ReplicatedJobsStatus {
		for _, restarts := range js.Status.ReplicatedJobsStatus[i].JobRestarts {
			n += int64(restarts)
		}
	}
	return int32(min(max(n, 0), math.MaxInt32))
}

// ready returns for how long all Jobs were ready. The sum in the status is of all executions.
func (e *execution) ready(js *jobsetv1alpha2.JobSet, until time.Time) time.Duration {
	var ready time.Duration
	if !e.retried {
		ready = time.Duration(js.Status.ReadyMilliseconds) * time.Millisecond
	}
	for i := range e.attempts {
		a := &e.attempts[i]
		switch {
		case a.ReadyTime == nil:
		case a.EndTime == nil:
			ready += max(0, until.Sub(a.ReadyTime.Time))
		case e.retried:
			ready += max(0, a.EndTime.Sub(a.ReadyTime.Time))
		}
	}
	return ready.Truncate(time.Millisecond)
}

// good returns for how long all Jobs were ready for work that was kept, at most the time for which they were ready; nil if the job reports
// no checkpoints. An execution that went back to an earlier step than the one before has done less.
func (e *execution) good(js *jobsetv1alpha2.JobSet, ready time.Duration, until time.Time) *int64 {
	goodput, reports := helper.GoodputOf(js)
	if !reports {
		return nil
	}
	good, _ := goodput.At(until)
	before := helper.LastCheckpoint(&jobsetv1alpha2.JobSetStatus{Attempts: e.before})
	if before != nil {
		good -= time.Duration(before.GoodMilliseconds) * time.Millisecond
	}
	return ptr.To(min(max(good, 0), ready).Milliseconds())
}
