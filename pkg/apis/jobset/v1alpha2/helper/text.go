// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// firstCharacters shortens the reason of an attempt to the length that the API allows, and makes it the one line that it must be.
func firstCharacters(reason string) string {
	reason = text.Line(reason)
	n := 0
	for i := range reason {
		if n == jobsetv1alpha2.MaxAttemptReasonCharacters {
			return reason[:i]
		}
		n++
	}
	return reason
}
