// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
)

// A request that names an attempt may be repeated: the repetition changes nothing and gets the first response, but only
// while what was requested is still so. Otherwise it is a Conflict that says what happened since.

// begunBefore returns the attempt that an earlier request like this one began, for the attempt that this one names; nil if none did. It
// must still be the current one, and no user may have stopped it.
func begunBefore(js *jobset.JobSet, p *batch.ActionPreconditions, call Call, past string,
	same func(*jobset.Attempt) bool) (*jobset.Attempt, error) {
	if p == nil || p.Attempt == nil {
		return nil, nil
	}
	next := following(&js.Status, *p.Attempt)
	if next == nil || !same(next) {
		return nil, nil
	}
	stopped := next.Outcome == jobset.OutcomeSuspended || next.Outcome == jobset.OutcomeCancelled || suspended(js)
	if next != Current(&js.Status) || stopped {
		return nil, lapsed(js, *p.Attempt, past, next.User, next.RequestTime, call)
	}
	return next, nil
}

// endedBefore returns the attempt that this request names, if an earlier one has ended it with the outcome; nil if none
// did. It must still be the current one.
func endedBefore(js *jobset.JobSet, p *batch.ActionPreconditions, call Call, past string,
	outcome jobset.AttemptOutcome) (*jobset.Attempt, error) {
	if p == nil || p.Attempt == nil {
		return nil, nil
	}
	for i := range js.Status.Attempts {
		entry := &js.Status.Attempts[i]
		if entry.Number != *p.Attempt || entry.Outcome != outcome || entry.EndUser == "" {
			continue
		}
		if entry != Current(&js.Status) {
			return nil, lapsed(js, entry.Number, past, entry.EndUser, entry.EndTime, call)
		}
		return entry, nil
	}
	return nil, nil
}

// awaited reports whether an attempt runs and was not ready yet: not all Jobs have been ready or succeeded at the same time.
func awaited(entry *jobset.Attempt) bool {
	return entry != nil && entry.EndTime == nil && entry.ReadyTime == nil
}

// joined is the response to a request to restart what an earlier request has restarted already, before the attempt that
// this began is ready. Several people who restart a set at the same time, or one who repeats the request, cause one
// restart.
func joined(js *jobset.JobSet, entry *jobset.Attempt, call Call) *batch.JobSetActionStatus {
	answer := nothing(js, fmt.Sprintf("attempt %d, requested%s by %s, is not ready yet; not restarted again; %s",
		entry.Number, call.ago(entry.RequestTime), entry.User, helper.ForceRestart))
	answer.Attempt = entry.Number
	return answer
}

// lapsed is the error for the repetition of a request that took effect, after which something else happened.
func lapsed(js *jobset.JobSet, attempt int32, past, user string, when *metav1.MicroTime, call Call) error {
	return conflict(js, "attempt %d was %s%s by %s; %s", attempt, past, call.ago(when), user, present(js, call))
}

// ago says how long ago something happened, after a space; nothing if that is not known.
func (c Call) ago(when *metav1.MicroTime) string { return action.Ago(when, c.Now) }

// present says what has become of the current attempt.
func present(js *jobset.JobSet, call Call) string {
	current := Current(&js.Status)
	by := func(what string) string {
		if current.EndUser == "" {
			return fmt.Sprintf("attempt %d is %s", current.Number, what)
		}
		return fmt.Sprintf("attempt %d was %s%s by %s", current.Number, what, call.ago(current.EndTime), current.EndUser)
	}
	switch {
	case current.Outcome == jobset.OutcomeCancelled:
		return by(cancelled)
	case finishedAs(js) == helper.PhaseCompleted:
		return fmt.Sprintf("attempt %d has completed", current.Number)
	case finishedAs(js) == helper.PhaseFailed:
		return fmt.Sprintf("attempt %d has failed", current.Number)
	case suspended(js):
		return by("suspended")
	case current.EndTime != nil:
		return "the JobSet was resumed since then"
	}
	return fmt.Sprintf("attempt %d is running", current.Number)
}
