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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// What users ask for is recorded by the server together with the change that they ask for; all else is recorded here, as a
// part of the status write that the change is.

// beginAttempt begins the attempt of a set that runs.
func beginAttempt(s state) changes {
	if helper.RunningAttempt(s.next) != nil {
		return changes{}
	}
	return changes{edits: []edit{begins(s.Observed, startedAttempt(s))}}
}

// noteCreated notes when all Jobs of the attempt were first seen.
func noteCreated(s state) (c changes) {
	a := helper.RunningAttempt(s.next)
	if a.CreateTime != nil {
		return changes{}
	}
	at := createTime(s, a)
	if at == nil {
		return changes{}
	}
	// Jobs of a set that was running before anybody kept its history were not created for this attempt.
	if helper.RunningAttempt(&s.JobSet.Status) != nil && Recreates(a.Trigger) {
		c.events = []Event{jobsRecreated(s.JobSet, a, at)}
	}
	c.edits = []edit{ofRunning(func(a *jobsetv1alpha2.Attempt) { a.CreateTime = at })}
	return c
}

// createTime returns when all Jobs of the attempt were first seen; nil while some are missing.
func createTime(s state, a *jobsetv1alpha2.Attempt) *metav1.MicroTime {
	if n := deferredOf(s.Observed, a); n.CreateTime != nil {
		return n.CreateTime.DeepCopy()
	}
	if present(s.owned.active)+present(s.owned.succeeded)+present(s.owned.failed) < helper.TotalReplicas(s.JobSet) {
		return nil
	}
	return helper.NotBeforeAttempts(s.next, s.Now.Time)
}

// deferredOf returns what was seen of the attempt while the status waited.
func deferredOf(o Observed, a *jobsetv1alpha2.Attempt) Deferred {
	if n := o.Deferred; n.UID == o.JobSet.UID && n.Attempt == a.Number {
		return n
	}
	return Deferred{}
}

// present counts the Jobs that are not being deleted.
func present[J metav1.Object](jobs []J) (n int64) {
	for _, job := range jobs {
		if job.GetDeletionTimestamp() == nil {
			n++
		}
	}
	return n
}

// noteReady notes that all Jobs of the attempt are ready or have succeeded.
func noteReady(s state) changes {
	a := helper.RunningAttempt(s.next)
	if a == nil || !s.KeepAttempts || a.ReadyTime != nil || a.CreateTime == nil {
		return changes{}
	}
	at := deferredOf(s.Observed, a).ReadyTime.DeepCopy()
	if at == nil && allUp(s.Observed, s.owned) && !restartingInPlace(s) {
		at = helper.NotBeforeAttempts(s.next, s.Now.Time)
	}
	if at == nil {
		return changes{}
	}
	return changes{edits: []edit{ofRunning(func(a *jobsetv1alpha2.Attempt) { a.ReadyTime = at })}}
}

// restartingInPlace reports whether the pods have not all come to the same attempt yet. Their Jobs look ready all the while.
func restartingInPlace(s state) bool {
	p := s.next.PreviousInPlaceRestartAttempt
	return p != nil && inplace.Restarts(s.JobSet, s.Gates) && ptr.Deref(s.next.CurrentInPlaceRestartAttempt, 0) <= *p
}

// startedAttempt is the next attempt of a set that runs although no attempt does: it has been created, or resumed by a
// change of its spec.
func startedAttempt(s state) jobsetv1alpha2.Attempt {
	if last := helper.CurrentAttempt(s.next); last != nil {
		trigger := jobsetv1alpha2.TriggerResume
		if last.Outcome == jobsetv1alpha2.OutcomeSuspended && last.EndUser == "" && queued(s.JobSet) {
			trigger = jobsetv1alpha2.TriggerPreemption
		}
		return jobsetv1alpha2.Attempt{Trigger: trigger, Scope: jobsetv1alpha2.ScopeJobSet}
	}
	first := jobsetv1alpha2.Attempt{
		Number: s.next.Restarts + 1, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet,
	}
	switch {
	case s.next.StartTime != nil:
		first.RequestTime = ptr.To(metav1.NewMicroTime(s.next.StartTime.Time))
	case s.next.Restarts == 0 && meta.FindStatusCondition(s.next.Conditions, jobsetv1alpha2.JobSetSuspended) == nil &&
		!s.JobSet.CreationTimestamp.IsZero():
		first.RequestTime = ptr.To(metav1.NewMicroTime(s.JobSet.CreationTimestamp.Time))
	}
	if s.next.Restarts > 0 {
		// The set was restarted before anybody kept its history, which only its failure policy did.
		first.Trigger = jobsetv1alpha2.TriggerFailurePolicy
		if c := current(s.next, jobsetv1alpha2.JobSetRestarting); c != nil {
			first.Reason = c.Message
		}
	}
	return first
}

// queued reports whether a queueing system decides when the set runs.
func queued(js *jobsetv1alpha2.JobSet) bool {
	return js.Labels[jobsetv1alpha2.QueueNameKey] != "" || metav1.GetControllerOfNoCopy(js) != nil
}

// begins appends an attempt.
func begins(o Observed, a jobsetv1alpha2.Attempt) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) { helper.BeginAttempt(next, a, o.Now.Time) }
}

// endAttempt ends the attempt that runs, if one does.
func endAttempt(o Observed, outcome jobsetv1alpha2.AttemptOutcome, reason string) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) {
		if o.KeepAttempts {
			helper.EndAttempt(next, outcome, "", reason, o.Now.Time)
		}
	}
}

// ofRunning changes the attempt that runs.
func ofRunning(change func(*jobsetv1alpha2.Attempt)) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) { change(helper.RunningAttempt(next)) }
}

// nextAttempt ends the attempt that runs and begins the one that a verdict of the failure policy calls for. A suspended set
// begins its next attempt when it is resumed.
func nextAttempt(s state, v verdict) edit {
	if suspended(s.JobSet) {
		return endAttempt(s.Observed, jobsetv1alpha2.OutcomeSuspended, messageSuspended)
	}
	return replaceAttempt(s, v.Message, part(s.Observed, v.Restarted, jobsetv1alpha2.Attempt{
		Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJobSet, Rule: v.Rule, Reason: v.Message,
	}))
}

// replaceAttempt ends the attempt that runs, because the set restarts, and begins another one. Where none runs, none begins.
func replaceAttempt(s state, reason string, by jobsetv1alpha2.Attempt) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) {
		if helper.RunningAttempt(next) == nil || !s.KeepAttempts {
			return
		}
		endAttempt(s.Observed, jobsetv1alpha2.OutcomeRestarted, reason)(next)
		begins(s.Observed, by)(next)
	}
}

// part says which part of the set an attempt starts: of several Jobs that are not all of one replicatedJob, the first one.
// The reason of the attempt has their number.
func part(o Observed, jobs []*batchv1.Job, a jobsetv1alpha2.Attempt) jobsetv1alpha2.Attempt {
	if len(jobs) == 0 {
		return a
	}
	a.ReplicatedJob = replicatedJobOf(jobs[0])
	rj, _ := o.replicatedJob(a.ReplicatedJob)
	others := slices.ContainsFunc(jobs, func(job *batchv1.Job) bool { return replicatedJobOf(job) != a.ReplicatedJob })
	if all := int(helper.Replicas(rj)); all > 1 && len(jobs) == all && !others {
		a.Scope = jobsetv1alpha2.ScopeReplicatedJob
		return a
	}
	a.Scope, a.JobIndex = jobsetv1alpha2.ScopeJob, ptr.To(jobIndex(jobs[0]))
	return a
}

// messageInPlace is the reason of attempts of pods that restart where they are.
const messageInPlace = "pods restart in place"

// restartInPlace begins the attempt of pods that restart where they are.
func restartInPlace(s state) changes {
	if helper.RunningAttempt(s.next) == nil || !s.KeepAttempts {
		return changes{}
	}
	next := jobsetv1alpha2.Attempt{Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJobSet, Reason: messageInPlace}
	next.AvoidedNodes = stillAvoided(s.next.Attempts, s.Now.Time)
	jobsStay := ofRunning(func(a *jobsetv1alpha2.Attempt) { a.CreateTime = a.RequestTime })
	c := causeInPlace(s, len(s.next.Attempts)-1)
	c.edits = append(c.edits, replaceAttempt(s, messageInPlace, next), jobsStay)
	return c
}

// causeInPlace records the first cause of the end of an attempt by a restart in place, unless it has one. What failed before
// the attempt began is the cause of an earlier restart: the status of the pod is late.
func causeInPlace(s state, attempt int) changes {
	cause, known := s.FailedInPlace.Get()
	if !known || attempt < 0 || !s.KeepAttempts {
		return changes{}
	}
	a := &s.next.Attempts[attempt]
	early := cause.Time != nil && a.RequestTime != nil && cause.Time.Time.Before(a.RequestTime.Truncate(time.Second))
	if a.FirstCause != nil || early {
		return changes{}
	}
	return changes{
		edits:  []edit{func(next *jobsetv1alpha2.JobSetStatus) { next.Attempts[attempt].FirstCause = cause.DeepCopy() }},
		events: []Event{firstFailure(cause)},
	}
}

// lateCause records the first cause of a restart in place that was not known when the restart began. It is written when the
// pods have come together, so that it costs no write. What has failed since the second in which the restart began is not its cause: the pod
// that caused it is gone, or this controller did not see which one it was, and containers of the others ended because they were told to.
func lateCause(s state, latest int32) changes {
	n, previous := len(s.next.Attempts), s.JobSet.Status.PreviousInPlaceRestartAttempt
	if n < 2 || previous == nil || *previous != latest-1 || ptr.Equal(s.JobSet.Status.CurrentInPlaceRestartAttempt, &latest) ||
		s.next.Attempts[n-1].Reason != messageInPlace {
		return changes{}
	}
	cause, began := s.FailedInPlace.Value(), s.next.Attempts[n-1].RequestTime
	if cause != nil && cause.Time != nil && began != nil && !cause.Time.Time.Before(began.Truncate(time.Second)) {
		return changes{}
	}
	return causeInPlace(s, n-2)
}

// closeAttempt ends the attempt of a set that finished while its history was not kept, for example by a controller of an
// earlier version.
func closeAttempt(s state) changes {
	finished := finishedCondition(s.next)
	outcome := jobsetv1alpha2.OutcomeCompleted
	if finished.Type == jobsetv1alpha2.JobSetFailed {
		outcome = jobsetv1alpha2.OutcomeFailed
	}
	return changes{edits: []edit{endAttempt(s.Observed, outcome, finished.Message)}}
}
