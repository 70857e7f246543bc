// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// What users ask for is recorded by the server together with the change that they ask for; all else is recorded here, as a
// part of the status write that the change is.

// followAttempt begins the attempt of a set that runs, and notes how far it has come.
func (b *statusBuilder) followAttempt(owned children) {
	if !b.o.KeepAttempts || suspended(b.o.JobSet) {
		return
	}
	known := helper.RunningAttempt(b.next) != nil
	if !known {
		helper.BeginAttempt(b.next, b.startedAttempt(), b.o.Now.Time)
	}
	b.avoidNodes()
	a := helper.RunningAttempt(b.next)
	if a.CreateTime == nil {
		a.CreateTime = b.createTime(a, owned)
		// Jobs of a set that was running before anybody kept its history were not created for this attempt.
		if a.CreateTime != nil && known && Recreates(a.Trigger) {
			b.events = append(b.events, jobsRecreated(b.o.JobSet, a))
		}
	}
	b.noteReady()
}

// createTime returns when all Jobs of the attempt were first seen; nil while some are missing.
func (b *statusBuilder) createTime(a *jobsetv1alpha2.Attempt, owned children) *metav1.MicroTime {
	if n := b.deferred(a); n.CreateTime != nil {
		return n.CreateTime.DeepCopy()
	}
	if present(owned.active, owned.succeeded, owned.failed) < helper.TotalReplicas(b.o.JobSet) {
		return nil
	}
	return helper.NotBeforeAttempts(b.next, b.o.Now.Time)
}

// deferred returns what was seen of the attempt while the status waited.
func (b *statusBuilder) deferred(a *jobsetv1alpha2.Attempt) Deferred {
	if n := b.o.Deferred; n.UID == b.o.JobSet.UID && n.Attempt == a.Number {
		return n
	}
	return Deferred{}
}

// present counts the Jobs that are not being deleted.
func present(lists ...[]*batchv1.Job) (n int64) {
	for _, jobs := range lists {
		for _, job := range jobs {
			if job.DeletionTimestamp == nil {
				n++
			}
		}
	}
	return n
}

// noteReady notes that all Jobs of the attempt are ready or have succeeded. Those of a set that restarts in place look
// ready although their pods have not all come to the same attempt yet.
func (b *statusBuilder) noteReady() {
	a := helper.RunningAttempt(b.next)
	if a == nil || !b.o.KeepAttempts || a.ReadyTime != nil || a.CreateTime == nil {
		return
	}
	if n := b.deferred(a); n.ReadyTime != nil {
		a.ReadyTime = n.ReadyTime.DeepCopy()
		return
	}
	if !b.allUp() {
		return
	}
	if p := b.next.PreviousInPlaceRestartAttempt; p != nil && RestartsInPlace(b.o.JobSet, b.o.Gates) &&
		ptr.Deref(b.next.CurrentInPlaceRestartAttempt, 0) <= *p {
		return
	}
	a.ReadyTime = helper.NotBeforeAttempts(b.next, b.o.Now.Time)
}

// startedAttempt is the next attempt of a set that runs although no attempt does: it has been created, or resumed by a
// change of its spec.
func (b *statusBuilder) startedAttempt() jobsetv1alpha2.Attempt {
	if last := helper.CurrentAttempt(b.next); last != nil {
		trigger := jobsetv1alpha2.TriggerResume
		if last.Outcome == jobsetv1alpha2.OutcomeSuspended && last.EndUser == "" && queued(b.o.JobSet) {
			trigger = jobsetv1alpha2.TriggerPreemption
		}
		return jobsetv1alpha2.Attempt{Trigger: trigger, Scope: jobsetv1alpha2.ScopeJobSet}
	}
	first := jobsetv1alpha2.Attempt{
		Number: b.next.Restarts + 1, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet,
	}
	switch {
	case b.next.StartTime != nil:
		first.RequestTime = ptr.To(metav1.NewMicroTime(b.next.StartTime.Time))
	case b.next.Restarts == 0 && meta.FindStatusCondition(b.next.Conditions, jobsetv1alpha2.JobSetSuspended) == nil &&
		!b.o.JobSet.CreationTimestamp.IsZero():
		first.RequestTime = ptr.To(metav1.NewMicroTime(b.o.JobSet.CreationTimestamp.Time))
	}
	if b.next.Restarts > 0 {
		// The set was restarted before anybody kept its history, which only its failure policy did.
		first.Trigger = jobsetv1alpha2.TriggerFailurePolicy
		if c := meta.FindStatusCondition(b.next.Conditions, jobsetv1alpha2.JobSetRestarting); c != nil && c.Status == metav1.ConditionTrue {
			first.Reason = c.Message
		}
	}
	return first
}

// queued reports whether a queueing system decides when the set runs.
func queued(js *jobsetv1alpha2.JobSet) bool {
	return js.Labels[jobsetv1alpha2.QueueNameKey] != "" || metav1.GetControllerOfNoCopy(js) != nil
}

// endAttempt ends the attempt that runs, if one does.
func (b *statusBuilder) endAttempt(outcome jobsetv1alpha2.AttemptOutcome, reason string) {
	if b.o.KeepAttempts {
		helper.EndAttempt(b.next, outcome, "", reason, b.o.Now.Time)
	}
}

// restartAttempt ends the attempt that runs and begins the one that a verdict of the failure policy calls for. A
// suspended set begins its next attempt when it is resumed.
func (b *statusBuilder) restartAttempt(v verdict) {
	if suspended(b.o.JobSet) {
		b.endAttempt(jobsetv1alpha2.OutcomeSuspended, messageSuspended)
		return
	}
	if helper.RunningAttempt(b.next) == nil || !b.o.KeepAttempts {
		return
	}
	next := jobsetv1alpha2.Attempt{
		Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJobSet, Rule: v.rule, Reason: v.message,
	}
	if len(v.restarted) > 0 {
		b.setPart(&next, v.restarted)
	}
	b.endAttempt(jobsetv1alpha2.OutcomeRestarted, v.message)
	helper.BeginAttempt(b.next, next, b.o.Now.Time)
	b.avoidNodes()
}

// setPart says which part of the set an attempt starts: of several Jobs that are not all of one replicatedJob, the first one.
// The reason of the attempt has their number.
func (b *statusBuilder) setPart(a *jobsetv1alpha2.Attempt, jobs []*batchv1.Job) {
	a.ReplicatedJob = replicatedJobOf(jobs[0])
	rj, _ := b.o.replicatedJob(a.ReplicatedJob)
	others := slices.ContainsFunc(jobs, func(job *batchv1.Job) bool { return replicatedJobOf(job) != a.ReplicatedJob })
	if all := int(helper.Replicas(rj)); all > 1 && len(jobs) == all && !others {
		a.Scope = jobsetv1alpha2.ScopeReplicatedJob
		return
	}
	a.Scope, a.JobIndex = jobsetv1alpha2.ScopeJob, ptr.To(jobIndex(jobs[0]))
}

// messageInPlace is the reason of attempts of pods that restart where they are.
const messageInPlace = "pods restart in place"

// restartAttemptInPlace begins the attempt of pods that restart where they are.
func (b *statusBuilder) restartAttemptInPlace() {
	if helper.RunningAttempt(b.next) == nil || !b.o.KeepAttempts {
		return
	}
	b.noteCauseInPlace(helper.RunningAttempt(b.next))
	b.endAttempt(jobsetv1alpha2.OutcomeRestarted, messageInPlace)
	helper.BeginAttempt(b.next, jobsetv1alpha2.Attempt{Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJobSet,
		Reason: messageInPlace}, b.o.Now.Time)
	a := helper.RunningAttempt(b.next)
	a.CreateTime = a.RequestTime // the Jobs stay
	a.AvoidedNodes = stillAvoided(b.next.Attempts[:len(b.next.Attempts)-1], b.o.Now.Time)
}

// noteCauseInPlace records the first cause of the end of an attempt by a restart in place, unless it has one. What
// failed before the attempt began is the cause of an earlier restart: the status of the pod is late.
func (b *statusBuilder) noteCauseInPlace(a *jobsetv1alpha2.Attempt) {
	cause := b.o.FailedInPlace
	if a == nil || cause == nil || a.FirstCause != nil || !b.o.KeepAttempts {
		return
	}
	if cause.Time != nil && a.RequestTime != nil && cause.Time.Time.Before(a.RequestTime.Truncate(time.Second)) {
		return
	}
	a.FirstCause = cause.DeepCopy()
	b.events = append(b.events, firstFailure(cause))
}

// noteLateCause records the first cause of a restart in place that was not known when the restart began. It is written when the pods have
// come together, so that it costs no write.
func (b *statusBuilder) noteLateCause(latest int32) {
	n, previous := len(b.next.Attempts), b.o.JobSet.Status.PreviousInPlaceRestartAttempt
	if n < 2 || previous == nil || *previous != latest-1 || ptr.Equal(b.o.JobSet.Status.CurrentInPlaceRestartAttempt, &latest) {
		return
	}
	if b.next.Attempts[n-1].Reason == messageInPlace {
		b.noteCauseInPlace(&b.next.Attempts[n-2])
	}
}

// closeAttempt ends the attempt of a set that finished while its history was not kept, for example by a controller of an
// earlier version.
func (b *statusBuilder) closeAttempt() {
	finished := finishedCondition(b.next)
	outcome := jobsetv1alpha2.OutcomeCompleted
	if finished.Type == jobsetv1alpha2.JobSetFailed {
		outcome = jobsetv1alpha2.OutcomeFailed
	}
	b.endAttempt(outcome, finished.Message)
}
