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

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
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
	if IsUndone(err) {
		return thisChild
	}
	var denied *DeniedError
	if errors.As(err, &denied) {
		return denied.reach
	}
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

// RefusesAll returns whether the same request for all other children of the kind is sure to be refused if it was
// refused for one of them with the error.
func RefusesAll(err error) bool { return reachOf(schema.GroupKind{}, "", err) == allChildren }

// forbiddenToAll returns whether no child may be created, changed or deleted: a quota is used up, or the controller lacks the right.
func forbiddenToAll(message string) bool {
	return says(message, "exceeded quota: ", "status unknown for quota: ",
		" cannot create resource ", " cannot delete resource ", " cannot patch resource ",
		" cannot update resource ")
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

// maxRefusal is the length of the message of a refusal in bytes.
const maxRefusal = 800

// RefusalOf describes the error of a creation, with a reason of conditions. Failures that are not a decision of the API may pass.
func RefusalOf(err error) plan.Refusal {
	reason := reasonOf(err)
	return plan.Refusal{Reason: reason, Message: text.TruncateWithEllipsis(text.Printable(err.Error()), maxRefusal),
		MayPass: reason == reasons.FailedCreate}
}

func reasonOf(err error) string {
	if IsUndone(err) {
		return reasons.UndoneByOthers
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return reasons.FailedCreate
	}
	status := answer.Status()
	if says(status.Message, denied...) {
		return reasons.AdmissionDenied
	}
	switch status.Code {
	case http.StatusForbidden:
		return reasonOfForbidden(status.Message)
	case http.StatusUnprocessableEntity, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return reasons.Invalid
	}
	return reasons.FailedCreate
}

func reasonOfForbidden(message string) string {
	switch {
	case says(message, "exceeded quota: "):
		return reasons.QuotaExceeded
	case says(message, "status unknown for quota: "): // the quota has just been created
		return reasons.FailedCreate
	case says(message, " cannot create resource ", "cannot set blockOwnerDeletion "):
		return reasons.Forbidden
	}
	return reasons.AdmissionDenied
}

// ReasonOfText returns the reason for which the API refused a child to another controller, of whose event nothing is known but the text.
func ReasonOfText(message string) string {
	switch {
	case says(message, denied...):
		return reasons.AdmissionDenied
	case says(message, " is forbidden: "):
		return reasonOfForbidden(message)
	case says(message, " is invalid: "):
		return reasons.Invalid
	}
	return reasons.FailedCreate
}

// denied are what the messages of webhooks and policies contain that deny a request, with any code.
var denied = []string{"admission webhook ", "' denied request"}

// says reports whether a message contains one of the parts.
func says(message string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(message, part) })
}

// IsUndone returns whether the API was not asked because another party undoes each such write.
func IsUndone(err error) bool {
	var undone *UndoneError
	return errors.As(err, &undone)
}

// TerminatingNamespace returns whether a creation was refused because everything here is about to be deleted.
func TerminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
