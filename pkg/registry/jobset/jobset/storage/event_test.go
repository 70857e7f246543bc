// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

func TestNewEvent(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ml", Name: "train"}
	because := func(reason string) batch.JobSetActionSpec { return batch.JobSetActionSpec{Reason: reason} }
	cases := map[string]struct {
		kind                           string
		request                        metav1.Object
		attempt                        int32
		wantAction, wantReason, wantOf string
	}{
		"a restart of the set": {
			"JobSetRestart", &batch.JobSetRestart{ObjectMeta: meta, Spec: batch.JobSetRestartSpec{Scope: batch.RestartScopeJobSet, Reason: "node-3 is slow"}}, 3,
			"restart", "RestartRequested", "ada asked to restart the set: node-3 is slow (attempt 3)",
		},
		"a restart without a reason": {
			"JobSetRestart", &batch.JobSetRestart{ObjectMeta: meta}, 2,
			"restart", "RestartRequested", "ada asked to restart the set (attempt 2)",
		},
		"a restart of one Job": {
			"JobSetRestart", &batch.JobSetRestart{ObjectMeta: meta, Spec: batch.JobSetRestartSpec{
				Scope: batch.RestartScopeJob, ReplicatedJob: "w", JobIndex: ptr.To[int32](2), Reason: "stuck",
			}}, 3,
			"restart", "RestartRequested", "ada asked to restart job train-w-2: stuck (attempt 3)",
		},
		"a restart of a replicatedJob": {
			"JobSetRestart", &batch.JobSetRestart{ObjectMeta: meta, Spec: batch.JobSetRestartSpec{Scope: batch.RestartScopeReplicatedJob, ReplicatedJob: "w"}}, 3,
			"restart", "RestartRequested", "ada asked to restart all jobs of replicatedJob w (attempt 3)",
		},
		"a suspension with a reason of two lines": {
			"JobSetSuspend", &batch.JobSetSuspend{ObjectMeta: meta, Spec: because("the rack\n  is moved\n")}, 3,
			"suspend", "SuspendRequested", "ada asked to suspend the set: the rack is moved (attempt 3 ended)",
		},
		"a suspension of a set that never ran": {
			"JobSetSuspend", &batch.JobSetSuspend{ObjectMeta: meta, Spec: because("later")}, 0,
			"suspend", "SuspendRequested", "ada asked to suspend the set: later",
		},
		"a resumption": {
			"JobSetResume", &batch.JobSetResume{ObjectMeta: meta, Spec: because("moved")}, 4,
			"resume", "ResumeRequested", "ada asked to resume the set: moved (attempt 4)",
		},
		"a cancellation": {
			"JobSetCancel", &batch.JobSetCancel{ObjectMeta: meta, Spec: because("wrong data")}, 4,
			"cancel", "CancelRequested", "ada asked to cancel the set: wrong data (attempt 4 ended)",
		},
		"a retry": {
			"JobSetRetry", &batch.JobSetRetry{ObjectMeta: meta, Spec: batch.JobSetRetrySpec{Reason: "fixed"}}, 5,
			"retry", "RetryRequested", "ada asked to retry the set: fixed (attempt 5)",
		},
		"a retry with one more restart": {
			"JobSetRetry", &batch.JobSetRetry{ObjectMeta: meta, Spec: batch.JobSetRetrySpec{MaxRestarts: 1}}, 5,
			"retry", "RetryRequested", "ada asked to retry the set with 1 more restart (attempt 5)",
		},
		"a retry with more restarts": {
			"JobSetRetry", &batch.JobSetRetry{ObjectMeta: meta, Spec: batch.JobSetRetrySpec{MaxRestarts: 3, Reason: "fixed"}}, 5,
			"retry", "RetryRequested", "ada asked to retry the set with 3 more restarts: fixed (attempt 5)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := newEvent(tc.kind, tc.request, &batch.JobSetActionStatus{UID: "u", User: "ada", Attempt: tc.attempt})
			want := provider.Event{
				Regarding: corev1.ObjectReference{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Namespace: "ml", Name: "train", UID: "u"},
				Action:    tc.wantAction, Reason: tc.wantReason, Note: tc.wantOf,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}
