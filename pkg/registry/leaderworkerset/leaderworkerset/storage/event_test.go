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
	meta := metav1.ObjectMeta{Namespace: "ml", Name: "llm"}
	cases := map[string]struct {
		kind                             string
		request                          metav1.Object
		wantAction, wantReason, wantNote string
	}{
		"a restart": {"LeaderWorkerSetRestart", &batch.LeaderWorkerSetRestart{ObjectMeta: meta, Spec: batch.LeaderWorkerSetRestartSpec{Reason: "the rack\n is moved\n"}},
			"restart", "RestartRequested", "ada asked to restart all groups: the rack is moved"},
		"a restart of a group": {"LeaderWorkerSetRestart", &batch.LeaderWorkerSetRestart{ObjectMeta: meta, Spec: batch.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](0)}},
			"restart", "RestartRequested", "ada asked to restart group 0"},
		"a rollback": {"LeaderWorkerSetRollback", &batch.LeaderWorkerSetRollback{ObjectMeta: meta, Spec: batch.LeaderWorkerSetRollbackSpec{Reason: "slow"}},
			"rollback", "RollbackRequested", "ada asked to roll the set back to revision 2: slow"},
		"a pause": {"LeaderWorkerSetPause", &batch.LeaderWorkerSetPause{ObjectMeta: meta, Spec: batch.LeaderWorkerSetActionSpec{Reason: "freeze"}},
			"pause", "PauseRequested", "ada asked to pause rolling updates: freeze"},
		"a resumption": {"LeaderWorkerSetResume", &batch.LeaderWorkerSetResume{ObjectMeta: meta, Spec: batch.LeaderWorkerSetActionSpec{Reason: "fixed"}},
			"resume", "ResumeRequested", "ada asked to resume rolling updates: fixed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := newEvent(tc.kind, tc.request, &batch.LeaderWorkerSetActionStatus{UID: "u", User: "ada", Revision: 2})
			want := provider.Event{
				Regarding: corev1.ObjectReference{APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet", Namespace: "ml", Name: "llm", UID: "u"},
				Action:    tc.wantAction, Reason: tc.wantReason, Note: tc.wantNote,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}
