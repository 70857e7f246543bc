// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// RecordEdit records who suspended or resumed a set by changing spec.suspend, as the actions do. The status of the changed
// set is that of the previous one, with which it may share memory.
//
// It records nothing for sets of a queue or of an owner: these suspend sets to preempt them and resume them to admit them, and
// the controller recognizes a preemption by an attempt that no user ended.
func RecordEdit(next, prev *jobset.JobSet, call Call) {
	if suspended(next) == suspended(prev) || decider(next) != "" || decider(prev) != "" || checkManaged(prev) != nil || finishedAs(prev) != "" {
		return
	}
	next.Status = *prev.Status.DeepCopy()
	if suspended(next) {
		end(&next.Status, jobset.OutcomeSuspended, call.user(), "", call.Now)
		return
	}
	end(&next.Status, jobset.OutcomeSuspended, "", "", call.Now) // unless it was recorded when it was suspended
	begin(&next.Status, jobset.Attempt{
		Number: next.Status.Restarts + 1, Trigger: jobset.TriggerResume, Scope: jobset.ScopeJobSet, User: call.user(),
	}, call.Now)
}
