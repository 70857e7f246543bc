// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reach is which children are refused for the reason for which one of them was refused.
type reach int

const (
	thisChild reach = iota
	sameTemplate
	allChildren
)

// reachOf returns the reach of the refusal of a child. Without a sign that others share the reason, they do not: webhooks and
// policies may look at the name.
func reachOf(kind schema.GroupKind, name string, err error) reach {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return allChildren // the API does not answer
	}
	status := answer.Status()
	switch {
	case strings.Contains(status.Message, "admission webhook "): // with any code
		return thisChild
	case status.Code >= http.StatusInternalServerError, TerminatingNamespace(err),
		slices.Contains([]int32{http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusNotFound}, status.Code),
		status.Code == http.StatusForbidden && forbiddenToAll(status.Message):
		return allChildren
	case status.Code == http.StatusUnprocessableEntity && templateInvalid(kind, name, status):
		return sameTemplate
	}
	return thisChild
}

// forbiddenToAll returns whether no child may be created: a quota is used up, or the controller lacks the right.
func forbiddenToAll(message string) bool {
	return strings.Contains(message, "exceeded quota: ") || strings.Contains(message, " cannot create resource ")
}

// templateInvalid returns whether the API finds nothing wrong but what all children of one template have in common. Policies
// answer with the same code, and labels of pods have the name of the child.
func templateInvalid(kind schema.GroupKind, name string, status metav1.Status) bool {
	if !strings.HasPrefix(status.Message, fmt.Sprintf("%s %q is invalid: ", kind, name)) || status.Details == nil {
		return false
	}
	return len(status.Details.Causes) > 0 && !slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return !strings.HasPrefix(cause.Field, "spec.") || strings.HasPrefix(cause.Field, "spec.template.labels") ||
			strings.HasPrefix(cause.Field, "spec.template.metadata")
	})
}

// TerminatingNamespace returns whether a creation was refused because everything here is about to be deleted.
func TerminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
