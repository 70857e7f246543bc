// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// newEvent describes a request that changed its SequentialJob. Its kind, such as SequentialJobRestart, names the action.
func newEvent(kind string, request metav1.Object, answer *batch.SequentialJobActionStatus) provider.Event {
	verb := strings.TrimPrefix(kind, "SequentialJob")
	action := strings.ToLower(verb)
	return provider.Event{
		Regarding: corev1.ObjectReference{
			APIVersion: batchv1alpha1.SchemeGroupVersion.String(), Kind: "SequentialJob",
			Namespace: request.GetNamespace(), Name: request.GetName(), UID: answer.UID,
		},
		Action: action, Reason: verb + "Requested",
		Note: provider.EventNote(fmt.Sprintf("%s asked to %s %s", answer.User, action, what(action, answer)), reasonOf(request), attempt(answer)),
	}
}

// what a request is about, as the object of a sentence.
func what(action string, answer *batch.SequentialJobActionStatus) string {
	switch {
	case action == "restart":
		return "step " + answer.Step
	case action == "retry" && answer.Step != "":
		return "the sequence from step " + answer.Step
	}
	return "the sequence"
}

func reasonOf(request metav1.Object) string {
	switch r := request.(type) {
	case *batch.SequentialJobRestart:
		return r.Spec.Reason
	case *batch.SequentialJobSuspend:
		return r.Spec.Reason
	case *batch.SequentialJobResume:
		return r.Spec.Reason
	case *batch.SequentialJobCancel:
		return r.Spec.Reason
	case *batch.SequentialJobRetry:
		return r.Spec.Reason
	}
	return ""
}

// attempt says in which attempt of which step the action took effect; nothing if none was started.
func attempt(answer *batch.SequentialJobActionStatus) string {
	if answer.Attempt == 0 {
		return ""
	}
	return fmt.Sprintf(" (step %s, attempt %d)", answer.Step, answer.Attempt)
}
