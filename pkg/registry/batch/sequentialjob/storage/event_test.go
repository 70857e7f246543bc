// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

func TestNewEvent(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ml", Name: "nightly"}
	because := batch.SequentialJobActionSpec{Reason: "the rack\n  is moved\n"}
	cases := map[string]struct {
		kind                             string
		request                          metav1.Object
		step                             string
		attempt                          int32
		wantAction, wantReason, wantNote string
	}{
		"a restart": {
			"SequentialJobRestart", &batch.SequentialJobRestart{ObjectMeta: meta, Spec: because}, "train", 3,
			"restart", "RestartRequested", "ada asked to restart step train: the rack is moved (step train, attempt 3)",
		},
		"a suspension": {
			"SequentialJobSuspend", &batch.SequentialJobSuspend{ObjectMeta: meta, Spec: because}, "train", 3,
			"suspend", "SuspendRequested", "ada asked to suspend the sequence: the rack is moved (step train, attempt 3)",
		},
		"a suspension before the start": {
			"SequentialJobSuspend", &batch.SequentialJobSuspend{ObjectMeta: meta}, "", 0,
			"suspend", "SuspendRequested", "ada asked to suspend the sequence",
		},
		"a resumption": {
			"SequentialJobResume", &batch.SequentialJobResume{ObjectMeta: meta, Spec: because}, "train", 3,
			"resume", "ResumeRequested", "ada asked to resume the sequence: the rack is moved (step train, attempt 3)",
		},
		"a cancellation between two steps": {
			"SequentialJobCancel", &batch.SequentialJobCancel{ObjectMeta: meta, Spec: because}, "train", 0,
			"cancel", "CancelRequested", "ada asked to cancel the sequence: the rack is moved",
		},
		"a retry": {
			"SequentialJobRetry", &batch.SequentialJobRetry{ObjectMeta: meta, Spec: batch.SequentialJobRetrySpec{Reason: "fixed"}}, "prepare", 2,
			"retry", "RetryRequested", "ada asked to retry the sequence from step prepare: fixed (step prepare, attempt 2)",
		},
		"a retry of what never started": {
			"SequentialJobRetry", &batch.SequentialJobRetry{ObjectMeta: meta}, "", 0,
			"retry", "RetryRequested", "ada asked to retry the sequence",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := newEvent(tc.kind, tc.request, &batch.SequentialJobActionStatus{UID: "u", User: "ada", Step: tc.step, Attempt: tc.attempt})
			want := provider.Event{
				Regarding: corev1.ObjectReference{APIVersion: "batch.jobset-apiserver.io/v1alpha1", Kind: "SequentialJob", Namespace: "ml", Name: "nightly", UID: "u"},
				Action:    tc.wantAction, Reason: tc.wantReason, Note: tc.wantNote,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}
