// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func history(restarts int32, attempts ...jobsetv1alpha2.Attempt) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.Restarts, js.Status.Attempts = restarts, attempts
		for i := range attempts {
			a := &attempts[i]
			a.Number = int32(i + 1)
			if a.Scope == "" {
				a.Scope = jobsetv1alpha2.ScopeJobSet
			}
			a.RequestTime = at(100 * i)
			if i < len(attempts)-1 {
				a.EndTime = at(100 * (i + 1))
			}
		}
	}
}

func TestRestartsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		restarts int32
		attempts []jobsetv1alpha2.Attempt
		want     map[int32]int32
	}{
		"restarts of the whole set": {
			restarts: 2,
			attempts: []jobsetv1alpha2.Attempt{{Trigger: jobsetv1alpha2.TriggerStart}, {Trigger: jobsetv1alpha2.TriggerFailurePolicy}, {Trigger: jobsetv1alpha2.TriggerRequested}},
			want:     map[int32]int32{1: 0, 2: 1, 3: 2},
		},
		"resuming and restarting a part keep the label": {
			restarts: 1,
			attempts: []jobsetv1alpha2.Attempt{
				{Trigger: jobsetv1alpha2.TriggerStart}, {Trigger: jobsetv1alpha2.TriggerRequested, Scope: jobsetv1alpha2.ScopeJob},
				{Trigger: jobsetv1alpha2.TriggerFailurePolicy, Outcome: jobsetv1alpha2.OutcomeSuspended}, {Trigger: jobsetv1alpha2.TriggerResume},
			},
			want: map[int32]int32{1: 0, 2: 0, 3: 1, 4: 1},
		},
		"a retry counts once, also of a set that was resumed only later": {
			restarts: 2,
			attempts: []jobsetv1alpha2.Attempt{
				{Trigger: jobsetv1alpha2.TriggerStart, Outcome: jobsetv1alpha2.OutcomeFailed}, {Trigger: jobsetv1alpha2.TriggerRetry, Outcome: jobsetv1alpha2.OutcomeCancelled},
				{Trigger: jobsetv1alpha2.TriggerResume},
			},
			want: map[int32]int32{1: 0, 2: 1, 3: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, restartsOf(train(history(tc.restarts, tc.attempts...)))); diff != "" {
				t.Errorf("labels by attempt (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInAttempt(t *testing.T) {
	twice := history(1, jobsetv1alpha2.Attempt{Trigger: jobsetv1alpha2.TriggerStart}, jobsetv1alpha2.Attempt{Trigger: jobsetv1alpha2.TriggerFailurePolicy})
	partly := history(0, jobsetv1alpha2.Attempt{Trigger: jobsetv1alpha2.TriggerStart}, jobsetv1alpha2.Attempt{Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJob})
	for name, tc := range map[string]struct {
		js   *jobsetv1alpha2.JobSet
		pods []*corev1.Pod
		want map[int][]string
	}{
		"a restart of the set brings other pods": {
			js: train(twice), pods: []*corev1.Pod{newPod("leader", 0, 0, "a"), newPod("leader", 0, 0, "b", ofRestart(1, 100))},
			want: map[int][]string{1: {"train-leader-0-0-a"}, 2: {"train-leader-0-0-b"}},
		},
		"pods that are being deleted belong to the attempt before": {
			js: train(twice), pods: []*corev1.Pod{newPod("leader", 0, 0, "a", func(pod *corev1.Pod) {
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(after(130)), ptr.To[int64](30)
			})},
			want: map[int][]string{1: {"train-leader-0-0-a"}, 2: nil},
		},
		"a restart of one Job leaves the others as they are": {
			js: train(partly), pods: []*corev1.Pod{
				newPod("leader", 0, 0, "a"), newPod("workers", 0, 0, "b", with(corev1.PodFailed, exited("main", 1, 90))), newPod("workers", 0, 0, "c", ofRestart(0, 105)),
			},
			want: map[int][]string{1: {"train-leader-0-0-a", "train-workers-0-0-b"}, 2: {"train-leader-0-0-a", "train-workers-0-0-c"}},
		},
		"pods that are restarted in place stay": {
			js: train(twice, func(js *jobsetv1alpha2.JobSet) {
				js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{RestartStrategy: jobsetv1alpha2.RestartStrategyInPlaceRestart}
			}),
			pods: []*corev1.Pod{newPod("leader", 0, 0, "a")},
			want: map[int][]string{1: {"train-leader-0-0-a"}, 2: {"train-leader-0-0-a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[int][]string{}
			for number := range tc.want {
				attempt, err := historyOf(tc.js).find(sourceOf(setOf(tc.js)), number)
				if err != nil {
					t.Fatal(err)
				}
				got[number] = nil
				for _, pod := range attempt.pods(tc.pods) {
					got[number] = append(got[number], pod.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pods by attempt (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindAttemptSaysWhatThereIs(t *testing.T) {
	for name, tc := range map[string]struct {
		js   *jobsetv1alpha2.JobSet
		want string
	}{
		"another number":           {js: train(history(0, jobsetv1alpha2.Attempt{})), want: "--attempt: attempt 5 is not on record; those of jobset train are 1 to 1"},
		"a server without history": {js: train(), want: "--attempt: this server keeps no history of attempts"},
		"a set that has not run":   {js: train(func(js *jobsetv1alpha2.JobSet) { js.Status.ReplicatedJobsStatus = nil }), want: "--attempt: jobset train has not run yet"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := historyOf(tc.js).find(sourceOf(setOf(tc.js)), 5); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}
