// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func started(number int32, request, create, ready, end float64, outcome jobsetv1alpha2.AttemptOutcome) jobsetv1alpha2.Attempt {
	a := jobsetv1alpha2.Attempt{Number: number, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet, RequestTime: at(request), Outcome: outcome}
	for _, f := range []struct {
		seconds float64
		field   **metav1.MicroTime
	}{{create, &a.CreateTime}, {ready, &a.ReadyTime}, {end, &a.EndTime}} {
		if f.seconds > 0 {
			*f.field = at(f.seconds)
		}
	}
	return a
}

func suspended(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }

func TestPhases(t *testing.T) {
	for name, tc := range map[string]struct {
		set       *jobsetv1alpha2.JobSet
		wantState string
		want      []string
	}{
		"a new set waits for the controller": {
			set: newSet(), wantState: "Pending", want: []string{"waiting 0 0-600 open"},
		},
		"a set that was created suspended": {
			set: newSet(suspended), wantState: "Suspended", want: []string{"suspended 0 0-600 open"},
		},
		"a set that waits in a queue": {
			set:       newSet(suspended, func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "gpu"} }),
			wantState: "Suspended", want: []string{"queued 0 0-600 open"},
		},
		"a set that another controller owns was queued before it ran": {
			set: newSet(withAttempts(started(1, 60, 61, 70, 0, "")), func(js *jobsetv1alpha2.JobSet) {
				js.OwnerReferences = []metav1.OwnerReference{{Kind: "TrainJob", Name: "train", Controller: ptr.To(true)}}
			}),
			wantState: "Running", want: []string{"queued 0 0-60", "creating 1 60-61", "starting 1 61-70", "running 1 70-600 open"},
		},
		"a set that a user resumed was suspended before it ran": {
			set:       newSet(withAttempts(started(1, 60, 61, 70, 0, "")), withCondition("Suspended", "ResumeJobs", metav1.ConditionFalse, 60)),
			wantState: "Running", want: []string{"suspended 0 0-60", "creating 1 60-61", "starting 1 61-70", "running 1 70-600 open"},
		},
		"Jobs that do not exist yet": {
			set: newSet(withAttempts(started(1, 0.2, 0, 0, 0, ""))), wantState: "Pending", want: []string{"creating 1 0.2-600 open"},
		},
		"Jobs that are not ready yet": {
			set: newSet(withAttempts(started(1, 0, 2, 0, 0, ""))), wantState: "Starting", want: []string{"creating 1 0-2", "starting 1 2-600 open"},
		},
		"a set that completed": {
			set: newSet(withAttempts(started(1, 0, 2, 5, 300, jobsetv1alpha2.OutcomeCompleted)),
				withCondition("Completed", "AllJobsCompleted", metav1.ConditionTrue, 300)),
			wantState: "Completed", want: []string{"creating 1 0-2", "starting 1 2-5", "running 1 5-300"},
		},
		"a restart begins when the attempt before ended": {
			set: newSet(withAttempts(started(1, 0, 2, 5, 300, jobsetv1alpha2.OutcomeRestarted), started(2, 300, 310, 320, 0, ""))), wantState: "Running",
			want: []string{"creating 1 0-2", "starting 1 2-5", "running 1 5-300", "creating 2 300-310", "starting 2 310-320", "running 2 320-600 open"},
		},
		"a set that was suspended and stays so": {
			set:       newSet(suspended, withAttempts(started(1, 0, 2, 5, 300, jobsetv1alpha2.OutcomeSuspended))),
			wantState: "Suspended", want: []string{"creating 1 0-2", "starting 1 2-5", "running 1 5-300", "suspended 0 300-600 open"},
		},
		"a set that was cancelled while it was suspended": {
			set: newSet(suspended, withAttempts(started(1, 0, 2, 5, 300, jobsetv1alpha2.OutcomeSuspended)),
				withCondition("Failed", "Cancelled", metav1.ConditionTrue, 400)),
			wantState: "Failed", want: []string{"creating 1 0-2", "starting 1 2-5", "running 1 5-300", "suspended 0 300-400"},
		},
		"a set that was cancelled before it ran": {
			set:       newSet(suspended, withCondition("Failed", "Cancelled", metav1.ConditionTrue, 400)),
			wantState: "Failed", want: []string{"suspended 0 0-400"},
		},
		"a failed set that was retried stood still between": {
			set: newSet(withAttempts(started(1, 0, 2, 5, 300, jobsetv1alpha2.OutcomeFailed), started(2, 500, 0, 0, 0, ""))), wantState: "Pending",
			want: []string{"creating 1 0-2", "starting 1 2-5", "running 1 5-300", "stopped 0 300-500", "creating 2 500-600 open"},
		},
		"a failed set that was retried while it was suspended": {
			set: newSet(suspended, withAttempts(started(1, 0, 2, 5, 300, jobsetv1alpha2.OutcomeFailed))), wantState: "Suspended",
			want: []string{"creating 1 0-2", "starting 1 2-5", "running 1 5-300", "suspended 0 300-600 open"},
		},
		"times of machines whose clocks differ do not overlap": {
			set: newSet(withAttempts(started(1, -3, 2, 1, 300, jobsetv1alpha2.OutcomeRestarted), started(2, 299.9, 300.2, 0, 0, ""))), wantState: "Starting",
			want: []string{"creating 1 0-2", "running 1 2-300", "creating 2 300-300.2", "starting 2 300.2-600 open"},
		},
		"without earlier attempts the life begins with the oldest one": {
			set: newSet(withAttempts(started(4, 500, 501, 502, 0, ""))), wantState: "Running",
			want: []string{"creating 4 500-501", "starting 4 501-502", "running 4 502-600 open"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Build(tc.set, after(600))
			var phases []string
			for _, p := range got.Phases {
				text := fmt.Sprintf("%s %d %v-%v", p.Kind, p.Attempt, p.Begin.Sub(noon).Seconds(), p.End.Sub(noon).Seconds())
				if p.Open {
					text += " open"
				}
				phases = append(phases, text)
			}
			if diff := cmp.Diff(tc.want, phases); diff != "" {
				t.Errorf("phases (-want +got):\n%s", diff)
			}
			if got.State != tc.wantState {
				t.Errorf("state: want %s, got %s", tc.wantState, got.State)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	got := Build(eventful(), after(12000))
	if want := 3420.0 + 1800 + 480 + 2880; got.ReadySeconds != want {
		t.Errorf("ready seconds: want %v, got %v", want, got.ReadySeconds)
	}
	if want := (3420.0 + 1800 + 480 + 2880) / 12000; got.ReadyShare != want {
		t.Errorf("ready share: want %v, got %v", want, got.ReadyShare)
	}
	type figures struct {
		Seconds, ToReady float64
		Recovers         bool
	}
	var attempts []figures
	for _, a := range got.Attempts {
		attempts = append(attempts, figures{a.Seconds, ptr.Deref(a.SecondsToReady, -1), a.Recovers})
	}
	if diff := cmp.Diff([]figures{{3600, 180, false}, {2100, 300, true}, {600, 120, false}, {3000, 120, true}}, attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// TestLifeBeginsWithCreation has a set that keeps 10 of its 14 attempts: its life is longer than they are.
func TestLifeBeginsWithCreation(t *testing.T) {
	var kept []jobsetv1alpha2.Attempt
	for n := 5; n <= 14; n++ {
		kept = append(kept, started(int32(n), 52+float64(n-5)*42, 53+float64(n-5)*42, 60+float64(n-5)*42, 52+float64(n-4)*42, jobsetv1alpha2.OutcomeRestarted))
	}
	kept[9].EndTime, kept[9].Outcome = nil, ""
	got := Build(newSet(withAttempts(kept...)), after(476))
	if want := "Running, 14 attempts in 7m56s, the last 10 are kept"; state(got) != want {
		t.Errorf("header: got %q, want %q", state(got), want)
	}
	if want := "the set keeps its last 10 attempts; the chart begins with attempt 5"; got.Note != want {
		t.Errorf("note: got %q, want %q", got.Note, want)
	}
	if got.LifeSeconds != 476 || !got.Begin.Equal(after(52)) {
		t.Errorf("life of %v seconds, chart from %v", got.LifeSeconds, got.Begin)
	}
}
