// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func micro(minutes int) *metav1.MicroTime {
	return ptr.To(metav1.NewMicroTime(start.Add(time.Duration(minutes) * time.Minute)))
}

func TestAttemptsFollowEachOther(t *testing.T) {
	status := &jobsetv1alpha2.JobSetStatus{}
	if helper.EndAttempt(status, jobsetv1alpha2.OutcomeFailed, "", "", start) != nil || helper.CurrentAttempt(status) != nil {
		t.Error("an attempt of a set without any was ended")
	}
	first := helper.BeginAttempt(status, jobsetv1alpha2.Attempt{Number: 3, Trigger: jobsetv1alpha2.TriggerStart}, start)
	if first.Number != 3 || helper.RunningAttempt(status) != first {
		t.Errorf("the first attempt: %+v", first)
	}
	first.CreateTime, first.ReadyTime = micro(1), micro(2)
	ended := helper.EndAttempt(status, jobsetv1alpha2.OutcomeRestarted, "alice", "new data", start.Add(5*time.Minute))
	want := &jobsetv1alpha2.Attempt{
		Number: 3, Trigger: jobsetv1alpha2.TriggerStart, RequestTime: micro(0), CreateTime: micro(1), ReadyTime: micro(2),
		EndTime: micro(5), Outcome: jobsetv1alpha2.OutcomeRestarted, EndUser: "alice", EndReason: "new data",
	}
	if diff := cmp.Diff(want, ended); diff != "" || status.ReadyMilliseconds != 180_000 {
		t.Errorf("ready for %d ms (-want +got):\n%s", status.ReadyMilliseconds, diff)
	}
	if second := helper.BeginAttempt(status, jobsetv1alpha2.Attempt{Number: 1}, start.Add(6*time.Minute)); second.Number != 4 {
		t.Errorf("the second attempt: %+v", second)
	}
}

// TestAttemptsHaveBounds begins more attempts than a status holds, with texts that are too long.
func TestAttemptsHaveBounds(t *testing.T) {
	status := &jobsetv1alpha2.JobSetStatus{}
	long := strings.Repeat("ä", 2000)
	for range 15 {
		helper.BeginAttempt(status, jobsetv1alpha2.Attempt{Number: 1, User: long, Reason: long}, start)
		helper.EndAttempt(status, jobsetv1alpha2.OutcomeRestarted, long, long, start)
	}
	if n := len(status.Attempts); n != 10 || status.Attempts[0].Number != 6 || status.Attempts[9].Number != 15 {
		t.Fatalf("%d attempts, from %d", n, status.Attempts[0].Number)
	}
	last := helper.CurrentAttempt(status)
	user, reason := strings.Repeat("ä", 128), strings.Repeat("ä", 1024)
	if diff := cmp.Diff([]string{user, reason, user, reason}, []string{last.User, last.Reason, last.EndUser, last.EndReason}); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

// TestAttemptsDoNotGoBack: the clocks of the server and the controller differ.
func TestAttemptsDoNotGoBack(t *testing.T) {
	for name, last := range map[string]jobsetv1alpha2.Attempt{
		"requested": {RequestTime: micro(9)},
		"created":   {RequestTime: micro(1), CreateTime: micro(9)},
		"ready":     {RequestTime: micro(1), CreateTime: micro(2), ReadyTime: micro(9)},
		// The controller has written the creation after the server the readiness.
		"created late": {RequestTime: micro(1), CreateTime: micro(9), ReadyTime: micro(2)},
	} {
		status := &jobsetv1alpha2.JobSetStatus{Attempts: []jobsetv1alpha2.Attempt{last}}
		ended := helper.EndAttempt(status, jobsetv1alpha2.OutcomeRestarted, "", "", start)
		next := helper.BeginAttempt(status, jobsetv1alpha2.Attempt{}, start)
		if !ended.EndTime.Equal(micro(9)) || !next.RequestTime.Equal(micro(9)) || status.ReadyMilliseconds < 0 {
			t.Errorf("%s: ended at %v, next requested at %v, ready for %d ms", name, ended.EndTime, next.RequestTime, status.ReadyMilliseconds)
		}
	}
}

func TestRestartExecution(t *testing.T) {
	at := metav1.NewTime(start)
	for name, tc := range map[string]struct {
		status, want jobsetv1alpha2.JobSetStatus
		count        bool
		start        *metav1.Time
	}{
		"not counted": {
			status: jobsetv1alpha2.JobSetStatus{Restarts: 2, ExecutionAttempts: ptr.To[int32](4), StartTime: &at},
			want:   jobsetv1alpha2.JobSetStatus{Restarts: 3, ExecutionAttempts: ptr.To[int32](4)},
		},
		"counted": {
			status: jobsetv1alpha2.JobSetStatus{Restarts: 2, ExecutionAttempts: ptr.To[int32](4)}, count: true, start: &at,
			want: jobsetv1alpha2.JobSetStatus{Restarts: 3, ExecutionAttempts: ptr.To[int32](5), StartTime: &at},
		},
		"the first that is counted": {
			status: jobsetv1alpha2.JobSetStatus{Restarts: 2}, count: true,
			want: jobsetv1alpha2.JobSetStatus{Restarts: 3, ExecutionAttempts: ptr.To[int32](3)},
		},
	} {
		helper.RestartExecution(&tc.status, tc.count, tc.start)
		if diff := cmp.Diff(tc.want, tc.status); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
