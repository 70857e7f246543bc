// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

type change = func(*jobsetv1alpha2.JobSet)

func TestRestarts(t *testing.T) {
	js := builders.JobSet("a", builders.WithJobs("w", 2, 1), func(js *jobsetv1alpha2.JobSet) {
		js.Status.RestartsCountTowardsMax, js.Status.AddedRestarts = 2, 3
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", JobRestarts: []int32{9, 9}, JobRestartsCountTowardsMax: []int32{1, 4}}}
	})
	if diff := cmp.Diff([]int64{7, 0}, []int64{helper.CountedRestarts(&js.Status), helper.RestartLimit(js)}); diff != "" {
		t.Errorf("without a failure policy (-want +got):\n%s", diff)
	}
	js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 5}
	if got := helper.RestartLimit(js); got != 8 {
		t.Errorf("limit %d", got)
	}
}

func since(kind string, minutes int) change {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.Conditions = append(js.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute)),
		})
	}
}

// TestReadyShare looks at sets an hour after their creation.
func TestReadyShare(t *testing.T) {
	attempt := func(a jobsetv1alpha2.Attempt, milliseconds int64) change {
		return func(js *jobsetv1alpha2.JobSet) {
			js.Status.Attempts, js.Status.ReadyMilliseconds = append(js.Status.Attempts, a), milliseconds
		}
	}
	for name, tc := range map[string]struct {
		changes             []change
		wantReady, wantLife time.Duration
	}{
		"never ready":                {changes: []change{attempt(jobsetv1alpha2.Attempt{Number: 1}, 0)}, wantLife: time.Hour},
		"ready for ten minutes":      {changes: []change{attempt(jobsetv1alpha2.Attempt{Number: 1, ReadyTime: micro(50)}, 0)}, wantReady: 10 * time.Minute, wantLife: time.Hour},
		"ready in an attempt before": {changes: []change{attempt(jobsetv1alpha2.Attempt{Number: 2}, 120_000)}, wantReady: 2 * time.Minute, wantLife: time.Hour},
		"ready before and now":       {changes: []change{attempt(jobsetv1alpha2.Attempt{Number: 2, ReadyTime: micro(50)}, 120_000)}, wantReady: 12 * time.Minute, wantLife: time.Hour},
		"an attempt that has ended is counted once": {
			changes:   []change{since("Completed", 30), attempt(jobsetv1alpha2.Attempt{Number: 1, ReadyTime: micro(20), EndTime: micro(30)}, 600_000)},
			wantReady: 10 * time.Minute, wantLife: 30 * time.Minute},
		"the last attempt ended before the set, which was suspended in between": {
			changes:   []change{since("Failed", 40), attempt(jobsetv1alpha2.Attempt{Number: 1, ReadyTime: micro(10), EndTime: micro(20)}, 600_000)},
			wantReady: 10 * time.Minute, wantLife: 40 * time.Minute},
		"only the terminal state says that the set has finished": {
			changes: []change{attempt(jobsetv1alpha2.Attempt{Number: 1, ReadyTime: micro(10), EndTime: micro(20)}, 600_000),
				func(js *jobsetv1alpha2.JobSet) { js.Status.TerminalState = "Failed" }},
			wantReady: 10 * time.Minute, wantLife: 20 * time.Minute},
		"clocks differ": {changes: []change{attempt(jobsetv1alpha2.Attempt{Number: 1, ReadyTime: micro(90)}, 0)}, wantLife: time.Hour},
	} {
		js := builders.JobSet("a", append(tc.changes, func(js *jobsetv1alpha2.JobSet) { js.CreationTimestamp = metav1.NewTime(start) })...)
		g, now := helper.ReadyShareOf(js), start.Add(time.Hour)
		ready, life := g.At(now)
		if diff := cmp.Diff([]time.Duration{tc.wantReady, tc.wantLife}, []time.Duration{ready, life}); diff != "" {
			t.Errorf("%s: ready and life (-want +got):\n%s", name, diff)
		}
		if want, got := tc.wantReady.Seconds()/tc.wantLife.Seconds(), g.Ratio(now); got != want {
			t.Errorf("%s: ready share %v, want %v", name, got, want)
		}
	}
	if got := helper.ReadyShareOf(builders.JobSet("a", func(js *jobsetv1alpha2.JobSet) { js.CreationTimestamp = metav1.NewTime(start) })).Ratio(start); got != 0 {
		t.Errorf("ready share of a new set: %v", got)
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	for _, job := range []string{"train-workers-0", "a"} {
		for _, message := range []string{"jobset failed", "applying RestartJob failure policy action to 3 jobs", " (first failed job: x)"} {
			if got := helper.FirstFailedJob(helper.WithFirstFailedJob(message, job)); got != job {
				t.Errorf("%q: got %q, want %q", message, got, job)
			}
		}
	}
	for _, message := range []string{"", "jobset failed", "(first failed job: x)", " (first failed job: x) and more"} {
		if got := helper.FirstFailedJob(message); got != "" {
			t.Errorf("%q: got %q", message, got)
		}
	}
	for _, user := range []string{"alice", "system:serviceaccount:ns:robot", "alice@example.com", "by the way"} {
		for _, reason := range []string{"", "new data", "bad: very"} {
			if got := helper.Requester(helper.RequestedBy("cancelled", user, reason), "cancelled"); got != user {
				t.Errorf("user %q, reason %q: got %q", user, reason, got)
			}
		}
	}
}

func TestNames(t *testing.T) {
	js := builders.JobSet("a", builders.WithJobs("w", 2, 1), builders.WithJobs("v", 3, 1))
	names := func() []any {
		return []any{
			helper.TotalReplicas(js), helper.JobName("a", "w", 1), helper.JobKey("ns", "a-w-1"), helper.GroupName(&js.Spec.ReplicatedJobs[0]),
			helper.ServiceName(js), helper.Subdomain(js), helper.CoordinatorName(js),
		}
	}
	const key = "32b2eacd936d77660d50f81fb21563037300c0e2" // the SHA-1 of ns/a-w-1
	if diff := cmp.Diff([]any{int64(5), "a-w-1", key, "default", "", "a", ""}, names()); diff != "" {
		t.Errorf("without a network (-want +got):\n%s", diff)
	}
	js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), Subdomain: "net"}
	js.Spec.Coordinator = &jobsetv1alpha2.Coordinator{ReplicatedJob: "w", JobIndex: 1, PodIndex: 2}
	js.Spec.ReplicatedJobs[0].GroupName = ptr.To("g")
	if diff := cmp.Diff([]any{int64(5), "a-w-1", key, "g", "net", "net", "a-w-1-2.net"}, names()); diff != "" {
		t.Errorf("with a network (-want +got):\n%s", diff)
	}
}
