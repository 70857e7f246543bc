// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Absent is the error of an object that has no scale, whatever its users write. It is Invalid, which answers writes; reads answer NotFound
// for the same reason.
type Absent struct {
	*apierrors.StatusError
	notFound *apierrors.StatusError
}

// NewAbsent returns the error of an object that cannot be scaled for a reason.
func NewAbsent(kind schema.GroupKind, name string, why *field.Error) *Absent {
	a := &Absent{StatusError: apierrors.NewInvalid(kind, name, field.ErrorList{why})}
	status := a.ErrStatus.DeepCopy()
	status.Code, status.Reason = http.StatusNotFound, metav1.StatusReasonNotFound
	status.Message = fmt.Sprintf("%s %q has no scale: %v", kind, name, why)
	a.notFound = &apierrors.StatusError{ErrStatus: *status}
	return a
}
