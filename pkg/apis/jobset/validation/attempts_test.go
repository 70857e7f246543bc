// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

var ended = ptr.To(metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))

// history is one of attempts that have ended but for the last.
func history(n int, change ...func(*jobset.Attempt)) []jobset.Attempt {
	attempts := make([]jobset.Attempt, n)
	for i := range attempts {
		attempts[i] = jobset.Attempt{
			Number: int32(i + 1), Trigger: jobset.TriggerFailurePolicy, Scope: jobset.ScopeJobSet,
			EndTime: ended, Outcome: jobset.OutcomeRestarted,
		}
	}
	last := &attempts[n-1]
	last.EndTime, last.Outcome = nil, ""
	for _, f := range change {
		f(last)
	}
	return attempts
}

func caused(change func(*jobset.FailureCause)) []jobset.Attempt {
	return history(1, func(a *jobset.Attempt) {
		a.FirstCause = &jobset.FailureCause{Job: "train-workers-0"}
		change(a.FirstCause)
	})
}

func TestAttempts(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	cases := map[string]struct {
		attempts []jobset.Attempt
		want     []refusal
	}{
		"own: ten attempts pass":  {attempts: history(10)},
		"own: eleven attempts":    {attempts: history(11), want: only("status.attempts", tooMany, "must have at most 10 items")},
		"own: any first number":   {attempts: history(1, func(a *jobset.Attempt) { a.Number = 7 })},
		"own: number 0":           {attempts: history(1, func(a *jobset.Attempt) { a.Number = 0 }), want: only("status.attempts[0].number", invalid, "must be 1 or more")},
		"own: two of one number":  {attempts: history(2, func(a *jobset.Attempt) { a.Number = 1 }), want: only("status.attempts[1].number", invalid, "must be greater than that of the previous attempt")},
		"own: an unknown trigger": {attempts: history(1, func(a *jobset.Attempt) { a.Trigger = "Luck" }), want: only("status.attempts[0].trigger", notSupported, `supported values: "Start", "FailurePolicy", "Requested", "Resume", "Preemption", "Retry"`)},
		"own: an unknown scope":   {attempts: history(1, func(a *jobset.Attempt) { a.Scope = "Pod" }), want: only("status.attempts[0].scope", notSupported, `supported values: "JobSet", "ReplicatedJob", "Job"`)},
		"own: an unknown outcome": {attempts: history(1, func(a *jobset.Attempt) { a.Outcome, a.EndTime = "Lost", ended }), want: only("status.attempts[0].outcome", notSupported, `supported values: "Completed", "Failed", "Restarted", "Suspended", "Cancelled"`)},
		"own: an end of the last": {attempts: history(2, func(a *jobset.Attempt) { a.Outcome, a.EndTime = jobset.OutcomeCompleted, ended })},
		"own: an end, no outcome": {attempts: history(1, func(a *jobset.Attempt) { a.EndTime = ended }), want: only("status.attempts[0].outcome", required, "must be set when endTime is set")},
		"own: an outcome, no end": {attempts: history(1, func(a *jobset.Attempt) { a.Outcome = jobset.OutcomeFailed }), want: only("status.attempts[0].endTime", required, "must be set when outcome is set")},
		"own: a negative index":   {attempts: history(1, func(a *jobset.Attempt) { a.JobIndex = ptr.To[int32](-1) }), want: only("status.attempts[0].jobIndex", invalid, "must be 0 or more")},
		"own: texts at their bound": {attempts: history(1, func(a *jobset.Attempt) {
			a.ReplicatedJob, a.Rule, a.User, a.Reason, a.EndUser, a.EndReason = long(253), long(128), long(256), strings.Repeat("ä", 1024), long(256), strings.Repeat("ä", 1024)
		})},
		"own: texts beyond their bound": {
			attempts: history(1, func(a *jobset.Attempt) {
				a.ReplicatedJob, a.Rule, a.User, a.Reason, a.EndUser, a.EndReason = long(254), long(129), long(257), long(1025), long(257), long(1025)
			}),
			want: []refusal{
				{"status.attempts[0].replicatedJob", tooLong, "may not be more than 253 bytes"},
				{"status.attempts[0].rule", tooLong, "may not be more than 128 bytes"},
				{"status.attempts[0].user", tooLong, "may not be more than 256 bytes"},
				{"status.attempts[0].reason", tooLong, "may not be more than 1024 characters"},
				{"status.attempts[0].endUser", tooLong, "may not be more than 256 bytes"},
				{"status.attempts[0].endReason", tooLong, "may not be more than 1024 characters"},
			},
		},
		"own: a cause at its bound": {attempts: caused(func(c *jobset.FailureCause) {
			c.Job, c.Pod, c.Node, c.Container, c.Reason, c.Message = long(253), long(253), long(253), long(253), long(1024), long(1024)
		})},
		"own: a cause beyond its bound": {
			attempts: caused(func(c *jobset.FailureCause) {
				c.Job, c.Pod, c.Node, c.Container, c.Reason, c.Message = long(254), long(254), long(254), long(254), long(1025), long(1025)
			}),
			want: []refusal{
				{"status.attempts[0].firstCause.job", tooLong, "may not be more than 253 bytes"},
				{"status.attempts[0].firstCause.pod", tooLong, "may not be more than 253 bytes"},
				{"status.attempts[0].firstCause.node", tooLong, "may not be more than 253 bytes"},
				{"status.attempts[0].firstCause.container", tooLong, "may not be more than 253 bytes"},
				{"status.attempts[0].firstCause.reason", tooLong, "may not be more than 1024 bytes"},
				{"status.attempts[0].firstCause.message", tooLong, "may not be more than 1024 bytes"},
			},
		},
		"own: a cause without a Job": {
			attempts: caused(func(c *jobset.FailureCause) { c.Job = "" }),
			want:     only("status.attempts[0].firstCause.job", required, "must be the name of the failed Job"),
		},
		"own: an attempt that never ended before the last": {
			attempts: append(history(1), jobset.Attempt{Number: 2, Trigger: jobset.TriggerRetry, Scope: jobset.ScopeJobSet}),
			want:     only("status.attempts[0].endTime", required, "must be set for every attempt but the last"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prev, next := train(), train()
			next.Status.Attempts = tc.attempts
			if diff := cmp.Diff(tc.want, refusals(validation.ValidateJobSetStatusUpdate(next, prev, gates.Gates{}))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
			again := next.DeepCopy()
			again.Status.Attempts = again.Status.Attempts[1:]
			if errs := validation.ValidateJobSetStatusUpdate(again, next, gates.Gates{}); len(errs) > 0 {
				t.Errorf("a stored history is refused when its oldest attempt is dropped: %v", errs.ToAggregate())
			}
		})
	}
}

func TestSumsOfAttempts(t *testing.T) {
	prev, next := train(), train()
	next.Status.ReadyMilliseconds, next.Status.AddedRestarts, next.Status.GoodMilliseconds = -1, -2, -3
	want := []refusal{
		{"status.readyMilliseconds", invalid, "must be 0 or more"},
		{"status.goodMilliseconds", invalid, "must be 0 or more"},
		{"status.addedRestarts", invalid, "must be 0 or more"},
	}
	if diff := cmp.Diff(want, refusals(validation.ValidateJobSetStatusUpdate(next, prev, gates.Gates{}))); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}
