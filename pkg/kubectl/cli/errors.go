// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// ExitCode makes the plugin exit with the code without a further message: the command has printed everything.
type ExitCode int

// Error implements error.
func (ExitCode) Error() string { return "failed" }

// ErrSilent is the exit code of an error that the command has printed.
var ErrSilent error = ExitCode(1)

// ExplainedError is an error with what the cluster knows about its cause.
type ExplainedError struct {
	Err error
	// Text is a paragraph.
	Text string
}

// Error implements error.
func (e *ExplainedError) Error() string { return e.Err.Error() + "\n" + e.Text }

// Unwrap returns the error without the text.
func (e *ExplainedError) Unwrap() error { return e.Err }

// Explain returns the message of an error of a command for the kinds, with the way out where the library's own message has none.
func Explain(err error, kinds ...Kind) string {
	message, served := strings.TrimSpace(err.Error()), KindOf(err, kinds).GroupVersion
	var explained *ExplainedError
	switch {
	case errors.As(err, &explained):
		return message
	case meta.IsNoMatchError(err), IsNotServed(err):
		return fmt.Sprintf("%s: the cluster does not serve %s; ask `kubectl get apiservice %s.%s`", message, served, served.Version, served.Group)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Sprintf("%s: ask `kubectl get apiservice %s.%s`", message, served.Version, served.Group)
	}
	return message
}

// KindOf returns the kind whose group the answer of a server names, or else the first.
func KindOf(err error, kinds []Kind) Kind {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		group := status.Status().Details.Group
		if at := slices.IndexFunc(kinds, func(k Kind) bool { return k.GroupVersion.Group == group }); at >= 0 {
			return kinds[at]
		}
	}
	return kinds[0]
}

// IsNotServed reports whether a NotFound is about the path and not about an object: the server knows no such resource.
func IsNotServed(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || strings.Contains(err.Error(), "the server could not find the requested resource")
}
