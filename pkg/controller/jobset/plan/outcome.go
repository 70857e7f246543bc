// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/policy"
)

// Reasons of conditions. The events about them have the same reasons (docs/reference/jobset.md#conditions).
const (
	reasonAllJobsCompleted  = reasons.AllJobsCompleted
	reasonSuspendedJobs     = "SuspendedJobs"
	reasonResumeJobs        = "ResumeJobs"
	reasonJobsReady         = "JobsReady"
	reasonJobSetFailed      = helper.ReasonJobSetFailed
	reasonJobSetCompleted   = "JobSetCompleted"
	reasonJobSetSuspended   = "JobSetSuspended"
	reasonInOrderInProgress = "InOrderStartupPolicyInProgress"
	reasonInOrderCompleted  = "InOrderStartupPolicyCompleted"
	reasonDeadlineExceeded  = helper.ReasonDeadlineExceeded
	// Reasons of the condition that upstream does not have.
	reasonJobNameTaken = reasons.NameConflict // as of the other kinds
	// Reasons of events that upstream does not have.
	reasonFirstFailure  = "FirstFailure"
	reasonJobsRecreated = "JobsRecreated"
	// suffixFailurePolicyAction follows the action in the reason of the event of a restart.
	suffixFailurePolicyAction = "FailurePolicyAction"
)

// complete ends the set with success.
func complete(s state) changes {
	const message = "jobset completed successfully"
	c := reports(troublesOver(reasonJobSetCompleted, message)...)
	c.conditions = []condition{
		begin(jobsetv1alpha2.JobSetCompleted, reasonAllJobsCompleted, message),
		end(jobsetv1alpha2.JobSetRestarting, reasonJobSetCompleted, message),
	}
	c.edits = []edit{endAttempt(s.Observed, jobsetv1alpha2.OutcomeCompleted, message), ends(jobsetv1alpha2.TerminalStateCompleted)}
	return c
}

func ends(in string) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) { next.TerminalState = in }
}

// successVerdict ends a set whose Jobs have succeeded, as its policy says; nil for others.
func successVerdict(o Observed, owned children) *policy.Verdict {
	if len(owned.failed) > 0 || !policy.Succeeded(o.JobSet, owned.succeeded) {
		return nil
	}
	return &policy.Verdict{Completes: true}
}

// failureVerdict returns what the failed Jobs mean for the set; nil if there are none.
func failureVerdict(o Observed, owned children) *policy.Verdict {
	return policy.OnFailure(o.JobSet, o.Gates, owned.failed, owned.failureTarget)
}

// verdict is what the policies of a set lead to.
type verdict struct{ *policy.Verdict }

// steps end the set, or move it to the next attempt.
func (v verdict) steps() []step {
	if v.Completes {
		return []step{endRestart, complete}
	}
	return []step{v.noteCause, v.apply, avoidNodes, v.report}
}

// noteCause records what failed first.
func (v verdict) noteCause(s state) changes {
	c := firstCause(s, v.Job, true)
	if v.InPlace && helper.RunningAttempt(s.next) != nil {
		c = c.and(causeInPlace(s, len(s.next.Attempts)-1))
	}
	return c
}

func (v verdict) apply(s state) changes {
	switch v.Action {
	case jobsetv1alpha2.FailJobSet:
		c := reports(troublesOver(reasonJobSetFailed, messageJobSetFailed)...)
		c.conditions = []condition{
			begin(jobsetv1alpha2.JobSetFailed, v.Reason, v.Message),
			end(jobsetv1alpha2.JobSetRestarting, reasonJobSetFailed, messageJobSetFailed),
		}
		c.edits = []edit{endAttempt(s.Observed, jobsetv1alpha2.OutcomeFailed, v.Message), ends(jobsetv1alpha2.TerminalStateFailed)}
		return c
	case jobsetv1alpha2.RestartJob, jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts:
		return changes{edits: []edit{countJobRestarts(s.Observed, v), nextAttempt(s, v)}}
	}
	return changes{
		conditions: []condition{begin(jobsetv1alpha2.JobSetRestarting, v.Reason, v.Message)},
		edits:      []edit{countRestart(s.Observed, v), followClock(s.Observed), nextAttempt(s, v)},
	}
}

// countRestart counts a restart of the whole set.
func countRestart(o Observed, v verdict) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) {
		helper.RestartExecution(next, o.Gates.ExecutionAttemptsTracking, nil)
		if policy.Counted(v.Action) {
			next.RestartsCountTowardsMax++
		}
	}
}

// report names the action, unless it ends the set, which the condition reports.
func (v verdict) report(state) changes {
	if v.Action == jobsetv1alpha2.FailJobSet {
		return changes{}
	}
	reason := fmt.Sprintf("%s%s", v.Action, suffixFailurePolicyAction)
	return changes{events: []Event{{Type: corev1.EventTypeWarning, Reason: reason, Note: v.Message}}}
}

// endRestart notes that all Jobs of a restarted set run again.
func endRestart(s state) changes {
	if suspended(s.JobSet) || !allUp(s.Observed, s.owned) {
		return changes{}
	}
	return wants(end(jobsetv1alpha2.JobSetRestarting, reasonJobsReady, "all jobs are ready"))
}

// allUp reports whether all Jobs are ready or have succeeded.
func allUp(o Observed, owned children) bool {
	return sumUp(owned.counts).up == helper.TotalReplicas(o.JobSet)
}

// startup notes how far an ordered start is. Each of its two conditions ends the other one. Upstream leaves the reason and
// the time of the ended condition as they were, which says the opposite of its status. It sends no event for it either.
func startup(o Observed, order startOrder) changes {
	const inProgress, hasCompleted = jobsetv1alpha2.JobSetStartupPolicyInProgress, jobsetv1alpha2.JobSetStartupPolicyCompleted
	reason, message := reasonInOrderInProgress, "in order startup policy is in progress"
	switch {
	case suspended(o.JobSet) || order == orderNone:
		return changes{}
	case order == orderDone:
		reason, message = reasonInOrderCompleted, "in order startup policy has completed"
		return wants(begin(hasCompleted, reason, message), quietly(end(inProgress, reason, message)))
	}
	return wants(begin(inProgress, reason, message), quietly(end(hasCompleted, reason, message)))
}
