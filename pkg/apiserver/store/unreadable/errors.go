// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	grpcstatus "google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// damage is why an object cannot be read. It is what distinguishes this from other errors of the storage.
type damage struct{ cause error }

func (d *damage) Error() string { return d.cause.Error() }
func (d *damage) Unwrap() error { return d.cause }

// Passes returns whether an error is about a service that decrypts, and not about the object: the service may be back in a moment.
func Passes(err error) bool {
	var remote interface{ GRPCStatus() *grpcstatus.Status }
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &remote)
}

// maxCause is how many bytes of an error are shown. What is stored may be anything, and errors quote it.
const maxCause = 300

// shown returns an error as a line of text.
func shown(err error) string {
	text := err.Error()
	quoted := strconv.Quote(strings.ToValidUTF8(text[:min(len(text), maxCause)], "\uFFFD"))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// refused returns what a request for an object is answered with.
func refused(o Object) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("%s %q is in the store, but cannot be read: %s. Nothing was changed. An administrator can save it with "+
			"\"jobset-apiserver store export --key %s\", and repair it with a version or an encryption key that can read it, "+
			"or remove it with \"jobset-apiserver store remove --key %s\"", o.Resource, o.name(), o.Cause, o.Key, o.Key),
		Details: &metav1.StatusDetails{Group: o.Resource.Group, Kind: o.Resource.Resource, Name: o.Name, Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeUnexpectedServerResponse, Field: o.Key, Message: o.Cause},
		}},
	}}
}

// interpret returns the answer to a request for one object. Errors that are not about what is stored are returned as they are.
func (r *resource) interpret(key string, err error) error {
	var found *damage
	if !errors.As(err, &found) {
		return err
	}
	o := r.object(r.absolute(key), shown(found))
	r.objects.add(o)
	return refused(o)
}
