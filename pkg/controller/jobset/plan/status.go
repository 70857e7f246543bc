// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Reasons of conditions. The events about them have the same reasons (docs/reference/jobset.md#conditions).
const (
	reasonAllJobsCompleted     = "AllJobsCompleted"
	reasonFailedJobs           = "FailedJobs"
	reasonReachedMaxRestarts   = "ReachedMaxRestarts"
	reasonFailJobSetAction     = "FailJobSetFailurePolicyAction"
	reasonSuspendedJobs        = "SuspendedJobs"
	reasonResumeJobs           = "ResumeJobs"
	reasonFailurePolicyPrefix  = "FailurePolicy_"
	reasonDefaultFailurePolicy = "DefaultFailurePolicy"
	reasonJobsReady            = "JobsReady"
	reasonJobSetFailed         = "JobSetFailed"
	reasonJobSetCompleted      = "JobSetCompleted"
	reasonJobSetSuspended      = "JobSetSuspended"
	reasonInOrderInProgress    = "InOrderStartupPolicyInProgress"
	reasonInOrderCompleted     = "InOrderStartupPolicyCompleted"
	reasonDeadlineExceeded     = "DeadlineExceeded"
	// Reasons of the condition that upstream does not have.
	reasonJobNameTaken = "JobNameTaken"
	// Reasons of events that upstream does not have.
	reasonFirstFailure  = "FirstFailure"
	reasonJobsRecreated = "JobsRecreated"
	// suffixFailurePolicyAction follows the action in the reason of the event of a restart.
	suffixFailurePolicyAction = "FailurePolicyAction"
)

// statusBuilder is the next status in the making, with the events that its transitions cause.
type statusBuilder struct {
	o      Observed
	next   *jobsetv1alpha2.JobSetStatus
	events []Event
	// pending means that the conditions are not about the present spec yet, because Jobs of a suspended set still run.
	pending bool
	// failedJob is the Job whose pods tell the first cause of the end of the attempt.
	failedJob *FailedJob
	// avoids means that pods of the attempt that runs are to keep off nodes, which is not stored yet.
	avoids bool
	// countNodes means that this depends on the number of nodes.
	countNodes bool
}

func newStatus(o Observed) *statusBuilder {
	return &statusBuilder{o: o, next: o.JobSet.Status.DeepCopy()}
}

// result returns the next status, nil if the stored one is right. All conditions of it hold for the present generation of
// the set, and say so. Conditions that an earlier version stored say nothing about generations; that alone is no reason
// to write.
func (b *statusBuilder) result() (*jobsetv1alpha2.JobSetStatus, []Event) {
	generation := b.o.JobSet.Generation
	outdated := !b.pending && slices.ContainsFunc(b.next.Conditions, func(c metav1.Condition) bool {
		return c.ObservedGeneration > 0 && c.ObservedGeneration < generation
	})
	if !outdated && equality.Semantic.DeepEqual(&b.o.JobSet.Status, b.next) {
		return nil, b.events
	}
	for i := range b.next.Conditions {
		c := &b.next.Conditions[i]
		c.ObservedGeneration = max(c.ObservedGeneration, generation)
	}
	return b.next, b.events
}

// complete ends the set with success.
func (b *statusBuilder) complete() {
	const message = "jobset completed successfully"
	b.set(jobsetv1alpha2.JobSetCompleted, metav1.ConditionTrue, reasonAllJobsCompleted, message)
	b.set(jobsetv1alpha2.JobSetRestarting, metav1.ConditionFalse, reasonJobSetCompleted, message)
	b.endNameConflict()
	b.endTroubles(reasonJobSetCompleted, message)
	b.endAttempt(jobsetv1alpha2.OutcomeCompleted, message)
	b.next.TerminalState = jobsetv1alpha2.TerminalStateCompleted
}

// applyFailure ends the set, or moves it to the next attempt.
func (b *statusBuilder) applyFailure(v verdict) {
	b.wantCause(v.job, true)
	if v.inPlace {
		b.noteCauseInPlace(helper.RunningAttempt(b.next))
	}
	switch v.action {
	case jobsetv1alpha2.FailJobSet:
		b.set(jobsetv1alpha2.JobSetFailed, metav1.ConditionTrue, v.reason, v.message)
		b.set(jobsetv1alpha2.JobSetRestarting, metav1.ConditionFalse, reasonJobSetFailed, messageJobSetFailed)
		b.endNameConflict()
		b.endTroubles(reasonJobSetFailed, messageJobSetFailed)
		b.endAttempt(jobsetv1alpha2.OutcomeFailed, v.message)
		b.next.TerminalState = jobsetv1alpha2.TerminalStateFailed
		return
	case jobsetv1alpha2.RestartJob, jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts:
		b.countJobRestarts(v)
	default:
		helper.RestartExecution(b.next, b.o.Gates.ExecutionAttemptsTracking, nil)
		b.setStartTime()
		if counted(v.action) {
			b.next.RestartsCountTowardsMax++
		}
		b.set(jobsetv1alpha2.JobSetRestarting, metav1.ConditionTrue, v.reason, v.message)
	}
	b.restartAttempt(v)
	reason := fmt.Sprintf("%s%s", v.action, suffixFailurePolicyAction)
	b.events = append(b.events, Event{Type: corev1.EventTypeWarning, Reason: reason, Note: v.message})
}

// endRestart notes that all Jobs of a restarted set run again.
func (b *statusBuilder) endRestart() {
	if !suspended(b.o.JobSet) && b.allUp() {
		b.set(jobsetv1alpha2.JobSetRestarting, metav1.ConditionFalse, reasonJobsReady, "all jobs are ready")
	}
}

// allUp reports whether all Jobs are ready or have succeeded.
func (b *statusBuilder) allUp() bool {
	var up int64
	for _, count := range b.next.ReplicatedJobsStatus {
		up += int64(count.Ready) + int64(count.Succeeded)
	}
	return up == helper.TotalReplicas(b.o.JobSet)
}

// setStartup notes how far an ordered start is. Each of its two conditions ends the other one.
func (b *statusBuilder) setStartup(order startOrder) {
	started, ended := jobsetv1alpha2.JobSetStartupPolicyInProgress, jobsetv1alpha2.JobSetStartupPolicyCompleted
	reason, message := reasonInOrderInProgress, "in order startup policy is in progress"
	switch {
	case suspended(b.o.JobSet) || order == orderNone:
		return
	case order == orderDone:
		started, ended = ended, started
		reason, message = reasonInOrderCompleted, "in order startup policy has completed"
	}
	b.set(started, metav1.ConditionTrue, reason, message)
	// Upstream leaves the reason and the time of the ended condition as they were, which says the opposite of its
	// status. It sends no event for it either.
	events := b.events
	b.set(ended, metav1.ConditionFalse, reason, message)
	b.events = events
}

// set puts a condition in place: a False one only where the condition exists, and its time only with its status.
func (b *statusBuilder) set(conditionType string, status metav1.ConditionStatus, reason, message string) {
	current := meta.FindStatusCondition(b.next.Conditions, conditionType)
	if current == nil && status == metav1.ConditionFalse {
		return
	}
	next := metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: b.o.Now}
	if current != nil {
		next.ObservedGeneration = current.ObservedGeneration // result sets those of all conditions
	}
	if meta.SetStatusCondition(&b.next.Conditions, next) {
		b.events = append(b.events, Event{Type: eventType(next), Reason: reason, Note: message})
	}
}

// troubles are the conditions whose beginning is worth a warning.
var troubles = []string{
	jobsetv1alpha2.JobSetFailed, jobsetv1alpha2.JobSetRestarting, jobsetv1alpha2.ChildNameConflict, jobsetv1alpha2.JobCreationFailure,
	jobsetv1alpha2.PodCreationFailure, jobsetv1alpha2.PodsUnschedulable, jobsetv1alpha2.PlacementPending, jobsetv1alpha2.Held,
	jobsetv1alpha2.RestartRulesMissing,
}

func eventType(c metav1.Condition) string {
	if c.Status == metav1.ConditionTrue && slices.Contains(troubles, c.Type) {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// finishedCondition returns the condition that ended the set; nil while it runs.
func finishedCondition(status *jobsetv1alpha2.JobSetStatus) *metav1.Condition {
	for _, conditionType := range []string{jobsetv1alpha2.JobSetCompleted, jobsetv1alpha2.JobSetFailed} {
		if c := meta.FindStatusCondition(status.Conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}
