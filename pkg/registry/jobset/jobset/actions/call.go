// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// Call is who asks, when, and what the server is to keep account of.
type Call struct {
	// User is the name of who asks.
	User string
	// Now is the time of the request.
	Now time.Time
	// Gates say which accounts are kept in the status.
	Gates gates.Gates
}

// time is in microseconds: what is stored equals what the first answer says.
func (c Call) time() *metav1.MicroTime {
	return &metav1.MicroTime{Time: c.Now.Truncate(time.Microsecond)}
}

// user is bounded, as the status is.
func (c Call) user() string { return text.Truncate(text.Line(c.User), jobset.MaxAttemptUserBytes) }

// signed says who asked for something and why, for messages of conditions.
func (c Call) signed(what, reason string) string {
	return helper.RequestedBy(what, c.user(), reason)
}

// began is the answer to a request that began an attempt.
func began(js *jobset.JobSet, entry *jobset.Attempt, format string, args ...any) *batch.JobSetActionStatus {
	return &batch.JobSetActionStatus{
		UID: js.UID, Attempt: entry.Number, User: entry.User, Time: entry.RequestTime.DeepCopy(), Message: fmt.Sprintf(format, args...),
	}
}

// ended is the answer to a request that ended an attempt.
func ended(js *jobset.JobSet, entry *jobset.Attempt, what string) *batch.JobSetActionStatus {
	return &batch.JobSetActionStatus{
		UID: js.UID, Attempt: entry.Number, User: entry.EndUser, Time: entry.EndTime.DeepCopy(),
		Message: fmt.Sprintf("the JobSet was %s, which ended attempt %d", what, entry.Number),
	}
}

// nothing is the answer to a request for what is so already.
func nothing(js *jobset.JobSet, message string) *batch.JobSetActionStatus {
	return &batch.JobSetActionStatus{UID: js.UID, Message: message}
}
