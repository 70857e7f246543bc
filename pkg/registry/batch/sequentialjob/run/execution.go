// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// rerun returns how often steps of a sequence ran again: for a restart, for a retry, or because they were changed. Steps keep the number of
// their attempts, and nothing else of earlier ones.
//
// The number of an execution is one more than that at its end. A retry makes a step run again, so that the number grows with each retry. It
// does not change once a sequence has ended. A retry after a cancellation between two steps makes no step run again: both executions then
// have the same number, and one run, which goes on. To remove a step that ran again lowers the number.
func rerun(status *batchv1alpha1.SequentialJobStatus) int32 {
	n := int64(0)
	for i := range status.Steps {
		n += max(int64(status.Steps[i].Attempts)-1, 0)
	}
	return int32(min(n, math.MaxInt32-1))
}

// beginOf returns when the current or last execution began: with the last retry, as far as it is known, or with the first step.
func beginOf(sj *batchv1alpha1.SequentialJob) time.Time {
	if last := sj.Status.LastAction; last != nil && last.Action == batchv1alpha1.ActionRetry && last.Time != nil {
		return last.Time.Time
	}
	failed := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionFailed)
	if failed != nil && failed.Status == metav1.ConditionFalse && failed.Reason == batchv1alpha1.ReasonRetried {
		return failed.LastTransitionTime.Time
	}
	if start := sj.Status.StartTime; start != nil {
		return start.Time
	}
	return sj.CreationTimestamp.Time
}

// endOf returns when a sequence ended.
func endOf(sj *batchv1alpha1.SequentialJob, finished *metav1.Condition) time.Time {
	if sj.Status.CompletionTime != nil {
		return sj.Status.CompletionTime.Time
	}
	return finished.LastTransitionTime.Time
}

// stepTimes returns for how long the steps ran in the current or last execution, by index. Nothing notes when the pods of a step are ready,
// so that the time of a step is taken. All steps together get the time in which the sequence was active, the latest step first: that time
// excludes suspensions and queues, and a retry begins it at 0.
func stepTimes(sj *batchv1alpha1.SequentialJob, until time.Time) []time.Duration {
	status := &sj.Status
	left := time.Duration(status.ActiveSeconds) * time.Second
	if since := status.ActiveSince; since != nil {
		left += max(0, until.Sub(since.Time))
	}
	times := make([]time.Duration, len(status.Steps))
	for i := len(status.Steps) - 1; i >= 0; i-- {
		step := &status.Steps[i]
		if step.StartTime == nil || step.State == batchv1alpha1.StepPending {
			continue
		}
		end := until
		if step.CompletionTime != nil {
			end = step.CompletionTime.Time
		}
		times[i] = min(max(0, end.Sub(step.StartTime.Time)), left)
		left -= times[i]
	}
	return times
}

// readyTime returns for how long pods of the sequence were ready: in the steps that are Jobs. JobSets have runs of their own, which name
// the sequence as their owner, so that sums over runs count nothing twice.
func readyTime(steps []helper.Step, times []time.Duration) (ready time.Duration) {
	for i, step := range steps[:min(len(steps), len(times))] {
		if step.Kind() == batchv1alpha1.StepKindJob {
			ready += times[i]
		}
	}
	return ready.Truncate(time.Millisecond)
}
