// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/policy"
)

// An execution is a time in which the set runs: it begins with the first start, with a resume and with a restart of the
// whole set (docs/reference/jobset.md#fields-of-the-coming-release).

// countExecution counts a start or a resume. The count is stored before any Job of the execution may run, together with
// the end of the suspension: that is how the next decision knows that this one has been counted.
func countExecution(s state) changes {
	if !s.Gates.ExecutionAttemptsTracking || suspended(s.JobSet) {
		return changes{}
	}
	executions := s.next.Restarts // a set that was run before anybody counted has had one for each restart, and the first one
	if counted := s.next.ExecutionAttempts; counted != nil {
		if current(s.next, jobsetv1alpha2.JobSetSuspended) == nil {
			return changes{}
		}
		executions = *counted + 1
	}
	c := endSuspension()
	c.edits = []edit{func(next *jobsetv1alpha2.JobSetStatus) { next.ExecutionAttempts = &executions }}
	c.commits = true
	return c
}

// clock keeps the clock of an execution, and has the set looked at when its deadline is over, once the start of the clock is stored: until
// then each decision starts the clock again, and its deadline would take the place of the pause after a status that is refused.
func clock(s state) changes {
	c := changes{edits: []edit{followClock(s.Observed)}}
	if start := startOf(s.Observed, s.next.StartTime); start.Equal(s.JobSet.Status.StartTime) {
		left := timeToDeadline(s.Observed, start)
		c.plan = Plan{ActsAfter: left, RequeueAfter: left}
	}
	return c
}

// followClock starts the clock of an execution, which stands still while the set is suspended.
func followClock(o Observed) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) { next.StartTime = startOf(o, next.StartTime) }
}

// startOf returns when the clock of an execution started, given when it did so far: now if it has not, and nil while it must stand still.
func startOf(o Observed, start *metav1.Time) *metav1.Time {
	switch {
	case !o.Gates.JobSetActiveDeadlineSeconds || suspended(o.JobSet):
		return nil
	case start == nil:
		return ptr.To(o.Now)
	}
	return start
}

func clearStartTime(next *jobsetv1alpha2.JobSetStatus) { next.StartTime = nil }

// deadlineVerdict ends a set whose execution takes too long; nil for others.
func deadlineVerdict(o Observed, _ children) *policy.Verdict {
	left, limited := deadline(o, o.JobSet.Status.StartTime)
	if !limited || left > 0 {
		return nil
	}
	return &policy.Verdict{
		Action: jobsetv1alpha2.FailJobSet, Reason: reasonDeadlineExceeded,
		Message: "jobset failed due to running longer than its active deadline",
	}
}

// timeToDeadline returns the time after which the deadline has to be looked at; 0 for never.
func timeToDeadline(o Observed, start *metav1.Time) time.Duration {
	left, limited := deadline(o, start)
	if !limited {
		return 0
	}
	return max(left, time.Nanosecond)
}

// deadline returns the time that is left to an execution that began at the time, if it is limited.
func deadline(o Observed, start *metav1.Time) (left time.Duration, limited bool) {
	seconds := o.JobSet.Spec.ActiveDeadlineSeconds
	if !o.Gates.JobSetActiveDeadlineSeconds || seconds == nil || start == nil || suspended(o.JobSet) ||
		*seconds > math.MaxInt64/int64(time.Second) {
		return 0, false
	}
	return start.Add(time.Duration(*seconds) * time.Second).Sub(o.Now.Time), true
}
