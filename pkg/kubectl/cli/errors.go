// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// ErrSilent makes the plugin exit with code 1 without a further message: the command has said all.
var ErrSilent = errors.New("failed")

// Explain returns the message of an error, with the way out where the library's own message has none.
func Explain(err error) string {
	message := strings.TrimSpace(err.Error())
	switch {
	case meta.IsNoMatchError(err), IsNotServed(err):
		return fmt.Sprintf("%s: the cluster does not serve %s; ask `kubectl get apiservice %s.%s`", message,
			jobsetv1alpha2.SchemeGroupVersion, jobsetv1alpha2.SchemeGroupVersion.Version, jobsetv1alpha2.GroupName)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Sprintf("%s: ask `kubectl get apiservice %s.%s`", message, jobsetv1alpha2.SchemeGroupVersion.Version, jobsetv1alpha2.GroupName)
	}
	return message
}

// IsNotServed tells whether a NotFound is about the path and not about an object: the server knows no such resource.
func IsNotServed(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || strings.Contains(err.Error(), "the server could not find the requested resource")
}
