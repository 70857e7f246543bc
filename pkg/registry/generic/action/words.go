// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Unmet adds to a Conflict which precondition is not met, and what is so instead. Clients that know the precondition by
// another name, such as that of a flag, make their own sentence of it.
func Unmet(err *apierrors.StatusError, kind metav1.CauseType, precondition, message string) error {
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: kind, Field: "spec.preconditions." + precondition, Message: message}}
	return err
}

// Ago says how long ago something happened, after a space; nothing if that is not known.
func Ago(when *metav1.MicroTime, now time.Time) string {
	if when == nil {
		return ""
	}
	return " " + duration.HumanDuration(max(now.Sub(when.Time), 0)) + " ago"
}
