// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// newEvent describes a request that changed its set. Its kind, such as LeaderWorkerSetRestart, names the action.
func newEvent(kind string, request metav1.Object, answer *batch.LeaderWorkerSetActionStatus) provider.Event {
	verb := strings.TrimPrefix(kind, "LeaderWorkerSet")
	what, reason := describe(request, answer)
	return provider.Event{
		Regarding: corev1.ObjectReference{
			APIVersion: leaderworkersetv1.SchemeGroupVersion.String(), Kind: "LeaderWorkerSet",
			Namespace: request.GetNamespace(), Name: request.GetName(), UID: answer.UID,
		},
		Action: strings.ToLower(verb), Reason: verb + "Requested",
		Note: provider.EventNote(fmt.Sprintf("%s asked to %s", answer.User, what), reason, ""),
	}
}

// describe says what a request asks for, and why.
func describe(request metav1.Object, answer *batch.LeaderWorkerSetActionStatus) (what, reason string) {
	switch r := request.(type) {
	case *batch.LeaderWorkerSetRestart:
		if r.Spec.Group != nil {
			return fmt.Sprintf("restart group %d", *r.Spec.Group), r.Spec.Reason
		}
		return "restart all groups", r.Spec.Reason
	case *batch.LeaderWorkerSetRollback:
		return fmt.Sprintf("roll the set back to revision %d", answer.Revision), r.Spec.Reason
	case *batch.LeaderWorkerSetPause:
		return "pause rolling updates", r.Spec.Reason
	case *batch.LeaderWorkerSetResume:
		return "resume rolling updates", r.Spec.Reason
	}
	return "change the set", ""
}
