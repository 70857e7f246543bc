// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
)

var tableTime = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(tableTime.Add(-d))) }

func TestRow(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
	}
	started := func(s *batch.SequentialJobStatus, index int32, state batch.StepState) {
		s.StartTime, s.Progress.CurrentIndex = ago(time.Hour), ptr.To(index)
		for len(s.Steps) <= int(index) && int(index) < 3 {
			s.Steps = append(s.Steps, batch.SequentialJobStepStatus{Name: "x", State: state})
		}
	}
	cases := map[string]struct {
		change func(*batch.SequentialJob)
		want   []any // after the name: Status Step Succeeded Age Current Duration Reason
	}{
		"before the start": {func(*batch.SequentialJob) {}, []any{"Pending", "0/3", int64(0), "1h", nil, nil, nil}},
		"the first step runs": {
			func(sj *batch.SequentialJob) { started(&sj.Status, 0, batch.StepRunning) }, []any{"Running", "1/3", int64(0), "1h", "a", "60m", nil},
		},
		"the second step waits": {
			func(sj *batch.SequentialJob) {
				started(&sj.Status, 1, batch.StepWaiting)
				sj.Status.State.Succeeded = 1
			},
			[]any{"Waiting", "2/3", int64(1), "1h", "b", "60m", "WaitingForQuota"},
		},
		"suspended": {
			func(sj *batch.SequentialJob) {
				started(&sj.Status, 1, batch.StepSuspended)
				sj.Spec.Suspend = ptr.To(true)
			},
			[]any{"Suspended", "2/3", int64(0), "1h", "b", "60m", nil},
		},
		"a step is refused": {
			func(sj *batch.SequentialJob) {
				started(&sj.Status, 1, batch.StepStarting)
				sj.Status.Conditions = condition("Available", metav1.ConditionFalse, "JobCreationFailed")
			},
			[]any{"Pending", "2/3", int64(0), "1h", "b", "60m", "JobCreationFailed"},
		},
		"the cluster is full": {
			func(sj *batch.SequentialJob) {
				started(&sj.Status, 2, batch.StepRunning)
				sj.Status.Conditions = condition("ResourcesUnavailable", metav1.ConditionTrue, "Unschedulable")
			},
			[]any{"Running", "3/3", int64(0), "1h", "c", "60m", "Unschedulable"},
		},
		"passes fail": {
			func(sj *batch.SequentialJob) {
				started(&sj.Status, 0, batch.StepRunning)
				sj.Status.Conditions = condition("Failed", metav1.ConditionTrue, "ReconciliationError")
			},
			[]any{"Running", "1/3", int64(0), "1h", "a", "60m", "ReconciliationError"},
		},
		"completed": {
			func(sj *batch.SequentialJob) {
				started(&sj.Status, 3, batch.StepSucceeded)
				sj.Status.State.Succeeded, sj.Status.CompletionTime = 3, ago(30*time.Minute)
				sj.Status.Conditions = condition("Complete", metav1.ConditionTrue, "AllJobsCompleted")
			},
			[]any{"Completed", "3/3", int64(3), "1h", nil, "30m", nil},
		},
		"failed": {
			func(sj *batch.SequentialJob) {
				started(&sj.Status, 1, batch.StepFailed)
				sj.Status.CompletionTime, sj.Status.Progress.FailureReason = ago(0), "BackoffLimitExceeded"
				sj.Status.Conditions = condition("Failed", metav1.ConditionTrue, "JobFailed")
			},
			[]any{"Failed", "2/3", int64(0), "1h", "b", "60m", "BackoffLimitExceeded"},
		},
		"cancelled": {
			func(sj *batch.SequentialJob) {
				started(&sj.Status, 1, batch.StepFailed)
				sj.Status.Conditions = condition("Failed", metav1.ConditionTrue, "Cancelled")
			},
			[]any{"Failed", "2/3", int64(0), "1h", "b", "60m", "Cancelled"},
		},
		"an index that is no step": {
			func(sj *batch.SequentialJob) { sj.Status.Progress.CurrentIndex = ptr.To[int32](99) }, []any{"Pending", "3/3", int64(0), "1h", "c", nil, nil},
		},
		"a negative index": {
			func(sj *batch.SequentialJob) { sj.Status.Progress.CurrentIndex = ptr.To[int32](-5) }, []any{"Pending", "0/3", int64(0), "1h", nil, nil, nil},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sj := &batch.SequentialJob{ObjectMeta: metav1.ObjectMeta{Name: "etl"}, Spec: batch.SequentialJobSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}, {Name: "c"}}}}
			tc.change(sj)
			if diff := cmp.Diff(append([]any{"etl"}, tc.want...), row(sj, "1h", tableTime)); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
	if len(columns) != 8 {
		t.Errorf("%d columns, want one for each cell", len(columns))
	}
}
