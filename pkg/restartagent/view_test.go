// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestNamesAreThoseOfTheAPI reads objects of the API with the types of the agent.
func TestNamesAreThoseOfTheAPI(t *testing.T) {
	for got, want := range map[string]string{
		disableKey: jobsetv1alpha2.DisableInPlaceRestartKey, attemptKey: jobsetv1alpha2.InPlaceRestartAttemptKey, inPlaceStrategy: string(jobsetv1alpha2.RestartStrategyInPlaceRestart),
		failurePolicyStarts: string(jobsetv1alpha2.TriggerFailurePolicy), jobSetVersion.String(): jobsetv1alpha2.SchemeGroupVersion.String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	now := metav1.NewMicroTime(begin)
	from := &jobsetv1alpha2.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: "train", UID: "uid-1"},
		Spec:       jobsetv1alpha2.JobSetSpec{FailurePolicy: &jobsetv1alpha2.FailurePolicy{RestartStrategy: jobsetv1alpha2.RestartStrategyInPlaceRestart}},
		Status: jobsetv1alpha2.JobSetStatus{
			PreviousInPlaceRestartAttempt: ptr.To[int32](1), CurrentInPlaceRestartAttempt: ptr.To[int32](2),
			Attempts: []jobsetv1alpha2.Attempt{{Trigger: jobsetv1alpha2.TriggerFailurePolicy, RequestTime: &now, EndTime: &now}},
		},
	}
	want := inPlace(ptr.To[int32](1), ptr.To[int32](2))
	want.Name = "train"
	want.Status.Attempts = []Attempt{{Trigger: failurePolicyStarts, RequestTime: &now, EndTime: &now}}
	got := &JobSet{}
	through(t, from, got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, got.DeepCopyObject()); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	list := &JobSetList{Items: []JobSet{*want}}
	if diff := cmp.Diff(list, list.DeepCopyObject()); diff != "" {
		t.Errorf("copy of a list (-want +got):\n%s", diff)
	}
	pod := &Pod{}
	through(t, &corev1.Pod{Status: corev1.PodStatus{
		StartTime: ptr.To(metav1.NewTime(begin)), ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1}, {RestartCount: 4}}, InitContainerStatuses: []corev1.ContainerStatus{{RestartCount: 3}},
	}}, pod)
	if pod.restarts() != 4 || !pod.Status.StartTime.Time.Equal(begin) {
		t.Errorf("pod is %+v", pod)
	}
}

func through(t *testing.T, from, to any) {
	t.Helper()
	content, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, to); err != nil {
		t.Fatal(err)
	}
}

// TestPauses bounds how long failed requests wait for the next one.
func TestPauses(t *testing.T) {
	delay, total := backoff(), time.Duration(0)
	for range 50 {
		pause := delay.Step()
		if pause > time.Minute {
			t.Errorf("a pause of %v", pause)
		}
		total += pause
	}
	if total < 15*time.Minute {
		t.Errorf("50 requests in %v", total)
	}
}
