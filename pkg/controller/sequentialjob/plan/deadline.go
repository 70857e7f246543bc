// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// pastDeadline returns whether the sequence was active for as long as it may be.
func (b *statusBuilder) pastDeadline() bool {
	limit := b.o.SequentialJob.Spec.ActiveDeadlineSeconds
	return limit != nil && b.activeSeconds() >= *limit
}

// failDeadline ends the sequence because its time is over. The next decision stops the child.
func (b *statusBuilder) failDeadline() {
	limit := *b.o.SequentialJob.Spec.ActiveDeadlineSeconds
	b.stopStep(batchv1alpha1.ReasonDeadlineExceeded)
	b.failSequence(batchv1alpha1.ReasonDeadlineExceeded, batchv1alpha1.ReasonDeadlineExceeded,
		fmt.Sprintf("Job %d did not end in time: the sequence was active for %s", b.index(), countSeconds(limit)))
}

// stopStep records that the current step is stopped because the sequence has failed.
func (b *statusBuilder) stopStep(reason string) {
	entry := begun(b.next)
	if entry == nil {
		return
	}
	entry.State, entry.CompletionTime, entry.Reason = batchv1alpha1.StepFailed, b.now(), reason
}

// timeToDeadline returns when the deadline is due; 0 for never.
func (b *statusBuilder) timeToDeadline() time.Duration {
	limit := b.o.SequentialJob.Spec.ActiveDeadlineSeconds
	if limit == nil || b.next.ActiveSince == nil {
		return 0
	}
	left := min(*limit-b.activeSeconds(), maxWait) // a sum of seconds that overflows is no time
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
