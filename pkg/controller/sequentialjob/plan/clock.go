// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// followClock starts and stops the clock of the deadline: time counts while a step has begun, unless it is suspended or waits
// for quota.
func (s *status) followClock() {
	entry := begun(s.next)
	counts := entry != nil && !helper.Suspended(s.o.SequentialJob) && s.next.CompletionTime == nil &&
		(entry.State == batchv1alpha1.StepRunning || entry.State == batchv1alpha1.StepStarting)
	switch {
	case counts && s.next.ActiveSince == nil:
		s.next.ActiveSince = ptr.To(s.o.Now)
	case !counts && s.next.ActiveSince != nil:
		s.next.ActiveSeconds = activeSeconds(s.next, s.o.Now)
		s.next.ActiveSince = nil
	}
}

// activeSeconds returns the time that counts towards the deadline.
func activeSeconds(status *batchv1alpha1.SequentialJobStatus, now metav1.Time) int64 {
	if status.ActiveSince == nil {
		return status.ActiveSeconds
	}
	return status.ActiveSeconds + max(0, int64(now.Sub(status.ActiveSince.Time).Seconds()))
}

// pastDeadline returns whether the sequence was active for as long as it may be.
func pastDeadline(o Observed) bool {
	limit := o.SequentialJob.Spec.ActiveDeadlineSeconds
	return limit != nil && activeSeconds(&o.SequentialJob.Status, o.Now) >= *limit
}

// lookAtDeadline has the sequence looked at when its deadline is due, once the start of the clock is stored: until then each decision
// starts the clock again, and its deadline would take the place of the pause after a status that is refused.
func lookAtDeadline(s *status) wants {
	if !s.next.ActiveSince.Equal(s.o.SequentialJob.Status.ActiveSince) {
		return wants{}
	}
	return wants{actsAfter: s.timeToDeadline()}
}

// timeToDeadline returns when the deadline is due; 0 for never.
func (s *status) timeToDeadline() time.Duration {
	limit := s.o.SequentialJob.Spec.ActiveDeadlineSeconds
	if limit == nil || s.next.ActiveSince == nil {
		return 0
	}
	left := min(*limit-activeSeconds(s.next, s.o.Now), maxWait) // a sum of seconds that overflows is no time
	return max(time.Duration(left)*time.Second, time.Second)
}

// maxWait is the longest time in seconds after which a sequence is looked at again.
const maxWait = 24 * 60 * 60

func countSeconds(n int64) string {
	if n == 1 {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", n)
}

// left returns the time until some seconds after a time are over; 0 if they are.
func left(o Observed, from metav1.Time, seconds int32) time.Duration {
	return max(0, from.Add(time.Duration(seconds)*time.Second).Sub(o.Now.Time))
}
