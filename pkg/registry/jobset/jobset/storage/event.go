// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

const wholeSet = "the set"

// newEvent describes a request that changed its JobSet. Its kind, such as JobSetRestart, names the action.
func newEvent(kind string, request metav1.Object, answer *batch.JobSetActionStatus) provider.Event {
	verb := strings.TrimPrefix(kind, "JobSet")
	action := strings.ToLower(verb)
	what, reason := asked(request)
	return provider.Event{
		Regarding: corev1.ObjectReference{
			APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSet",
			Namespace: request.GetNamespace(), Name: request.GetName(), UID: answer.UID,
		},
		Action: action, Reason: verb + "Requested",
		Note: provider.EventNote(fmt.Sprintf("%s asked to %s %s", answer.User, action, what), reason, attemptOf(action, answer.Attempt)),
	}
}

// asked returns what a request is about, as the object of a sentence, and why it was made.
func asked(request metav1.Object) (what, reason string) {
	switch r := request.(type) {
	case *batch.JobSetRestart:
		return restartTarget(r), r.Spec.Reason
	case *batch.JobSetSuspend:
		return wholeSet, r.Spec.Reason
	case *batch.JobSetResume:
		return wholeSet, r.Spec.Reason
	case *batch.JobSetCancel:
		return wholeSet, r.Spec.Reason
	case *batch.JobSetRetry:
		return retryTarget(r), r.Spec.Reason
	}
	return wholeSet, ""
}

// attemptOf says which attempt the action began or ended; nothing if none.
func attemptOf(action string, number int32) string {
	switch {
	case number == 0:
		return ""
	case action == "suspend" || action == "cancel":
		return fmt.Sprintf(" (attempt %d ended)", number)
	}
	return fmt.Sprintf(" (attempt %d)", number)
}

// restartTarget names what is to be restarted.
func restartTarget(r *batch.JobSetRestart) string {
	switch r.Spec.Scope {
	case batch.RestartScopeReplicatedJob:
		return "all jobs of replicatedJob " + r.Spec.ReplicatedJob
	case batch.RestartScopeJob:
		return "job " + helper.JobName(r.Name, r.Spec.ReplicatedJob, ptr.Deref(r.Spec.JobIndex, 0))
	}
	return wholeSet
}

// retryTarget is the set, and what it gets with the retry.
func retryTarget(r *batch.JobSetRetry) string {
	switch n := r.Spec.MaxRestarts; n {
	case 0:
		return wholeSet
	case 1:
		return wholeSet + " with 1 more restart"
	default:
		return fmt.Sprintf("%s with %d more restarts", wholeSet, n)
	}
}
