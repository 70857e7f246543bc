// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// followClock starts and stops the clock of the deadline: time counts while a step has begun, unless it is suspended or waits
// for quota.
func followClock(q *sequence, next *batchv1alpha1.SequentialJobStatus) {
	entry := begun(next)
	counts := entry != nil && !q.suspended && next.CompletionTime == nil &&
		(entry.State == batchv1alpha1.StepRunning || entry.State == batchv1alpha1.StepStarting)
	switch {
	case counts && next.ActiveSince == nil:
		next.ActiveSince = ptr.To(q.Now)
	case !counts && next.ActiveSince != nil:
		next.ActiveSeconds = activeSeconds(next, q.Now)
		next.ActiveSince = nil
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
func pastDeadline(q *sequence) bool {
	limit := q.SequentialJob.Spec.ActiveDeadlineSeconds
	return limit != nil && activeSeconds(&q.SequentialJob.Status, q.Now) >= *limit
}

// awaitDeadline returns when the deadline is due; never while the clock stands still, nor until its start is stored: until then each
// decision starts the clock again, and its deadline would take the place of the pause after a status that is refused.
func awaitDeadline(q *sequence, next *batchv1alpha1.SequentialJobStatus) wants {
	limit := q.SequentialJob.Spec.ActiveDeadlineSeconds
	if limit == nil || next.ActiveSince == nil || !next.ActiveSince.Equal(q.SequentialJob.Status.ActiveSince) {
		return wants{}
	}
	left := min(*limit-activeSeconds(next, q.Now), maxWait) // a sum of seconds that overflows is no time
	return wants{actsAfter: max(time.Duration(left)*time.Second, time.Second)}
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
func left(now, from metav1.Time, seconds int32) time.Duration {
	return max(0, from.Add(time.Duration(seconds)*time.Second).Sub(now.Time))
}
