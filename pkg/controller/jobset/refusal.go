// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reach is which Jobs of a set are refused for the reason for which one of them was refused.
type reach int

const (
	thisJob reach = iota
	sameTemplate
	allJobs
)

// reachOf returns the reach of the refusal of a Job. Without a sign that others share the reason, they do not: webhooks and
// policies may look at the name.
func reachOf(job string, err error) reach {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return allJobs // the main API does not answer
	}
	status := answer.Status()
	switch {
	case strings.Contains(status.Message, "admission webhook "): // with any code
		return thisJob
	case status.Code >= http.StatusInternalServerError, terminatingNamespace(err),
		slices.Contains([]int32{http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusNotFound}, status.Code),
		status.Code == http.StatusForbidden && forbiddenToAll(status.Message):
		return allJobs
	case status.Code == http.StatusUnprocessableEntity && templateInvalid(job, status):
		return sameTemplate
	}
	return thisJob
}

// forbiddenToAll returns whether no Job may be created: a quota is used up, or the controller lacks the right.
func forbiddenToAll(message string) bool {
	return strings.Contains(message, "exceeded quota: ") || strings.Contains(message, " cannot create resource ")
}

// templateInvalid returns whether the Job API finds nothing wrong but what all Jobs of a replicatedJob have in common.
// Policies answer with the same code, and labels of pods have the name of the Job.
func templateInvalid(job string, status metav1.Status) bool {
	if !strings.HasPrefix(status.Message, fmt.Sprintf("Job.batch %q is invalid: ", job)) || status.Details == nil {
		return false
	}
	return len(status.Details.Causes) > 0 && !slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return !strings.HasPrefix(cause.Field, "spec.") || strings.HasPrefix(cause.Field, "spec.template.labels") ||
			strings.HasPrefix(cause.Field, "spec.template.metadata")
	})
}

// terminatingNamespace returns whether a creation was refused because everything here is about to be deleted.
func terminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
