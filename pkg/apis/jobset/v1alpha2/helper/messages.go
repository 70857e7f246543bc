// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"strings"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// Messages of conditions that other code reads back. Each format stands beside its parser.

const (
	firstFailedBegin = " (first failed job: "
	firstFailedEnd   = ")"
)

// ReasonJobNamesFree and MessageJobNamesFree are what the condition ChildNameConflict says when it becomes False.
const (
	ReasonJobNamesFree  = "JobNamesFree"
	MessageJobNamesFree = "the names of all jobs of the jobset are available"
)

// ForceRestart is how a request to restart what restarts already says what would restart it again. Clients that have a flag for
// that name the flag instead.
const ForceRestart = "set spec.force to restart it"

// WithFirstFailedJob adds the name of the Job that failed first to the message of a condition. Upstream uses the same words.
func WithFirstFailedJob(message, job string) string {
	return message + firstFailedBegin + job + firstFailedEnd
}

// FirstFailedJob returns the name of the Job that a message of WithFirstFailedJob has; "" if it has none.
func FirstFailedJob(message string) string {
	at := strings.LastIndex(message, firstFailedBegin)
	if at < 0 || !strings.HasSuffix(message, firstFailedEnd) {
		return ""
	}
	return message[at+len(firstFailedBegin) : len(message)-len(firstFailedEnd)]
}

// RequestedBy says what happened on whose request, and why if there is a reason.
func RequestedBy(what, user, reason string) string {
	message := what + " by " + user
	if reason != "" {
		message += ": " + reason
	}
	return message
}

// Requester returns the user in a message of RequestedBy.
func Requester(message, what string) string {
	user, _, _ := strings.Cut(strings.TrimPrefix(message, what+" by "), ": ")
	return user
}

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
