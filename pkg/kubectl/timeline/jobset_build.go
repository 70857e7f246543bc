// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Build works out the timeline of a set from its status.
func Build(js *jobsetv1alpha2.JobSet, now time.Time) *Timeline {
	b := &builder{js: js, now: now, t: &Timeline{
		JobSet: js.Name, Namespace: js.Namespace, Summary: snapshot.Summarize(js),
		CreateTime: js.CreationTimestamp.UTC(), Begin: js.CreationTimestamp.UTC(), Attempts: []Attempt{}, Phases: []Phase{},
	}}
	b.end()
	b.t.LifeSeconds = b.t.End.Sub(b.t.CreateTime).Seconds()
	b.attempts()
	b.readyShare()
	return b.t
}

type builder struct {
	js  *jobsetv1alpha2.JobSet
	now time.Time
	t   *Timeline
	// reached is the end of the last phase. Times of two machines may differ, phases must not overlap.
	reached time.Time
}

// end finds out when the set finished, if it did.
func (b *builder) end() {
	b.t.End = later(b.now.UTC(), b.t.Begin)
	terminal := b.js.Status.TerminalState
	if terminal == "" {
		return
	}
	b.t.Finished = true
	if n := len(b.js.Status.Attempts); n > 0 && b.js.Status.Attempts[n-1].EndTime != nil {
		b.t.End = later(b.js.Status.Attempts[n-1].EndTime.UTC(), b.t.Begin)
	}
	// A set that was cancelled before it ran, or that a server without attempts ended, has the condition only.
	if c := meta.FindStatusCondition(b.js.Status.Conditions, terminal); c != nil && c.Status == metav1.ConditionTrue {
		if n := len(b.js.Status.Attempts); n == 0 || b.js.Status.Attempts[n-1].Outcome == jobsetv1alpha2.OutcomeSuspended {
			b.t.End = later(c.LastTransitionTime.UTC(), b.t.Begin)
		}
	}
}

func (b *builder) attempts() {
	attempts := b.js.Status.Attempts
	b.reached = b.t.Begin
	if len(attempts) > 0 && attempts[0].Number > 1 {
		b.t.Note = fmt.Sprintf("the set keeps its last %d attempts; the chart begins with attempt %d", len(attempts), attempts[0].Number)
		if attempts[0].RequestTime != nil {
			b.t.Begin = later(attempts[0].RequestTime.UTC(), b.t.Begin)
			b.reached = b.t.Begin
		}
	}
	for i := range attempts {
		var before *jobsetv1alpha2.Attempt
		if i > 0 {
			before = &attempts[i-1]
		}
		begin := b.reached
		if attempts[i].RequestTime != nil {
			begin = later(attempts[i].RequestTime.UTC(), b.reached)
		}
		if begin.Sub(b.reached) >= gapFrom {
			b.phase(b.gap(before, attempts[i].Trigger), 0, begin, false)
		}
		b.reached = begin
		b.attempt(&attempts[i])
	}
	if n := len(attempts); n == 0 {
		b.lastGap(nil)
	} else if attempts[n-1].EndTime != nil {
		b.lastGap(&attempts[n-1])
	}
}

// attempt adds an attempt and its phases.
func (b *builder) attempt(a *jobsetv1alpha2.Attempt) {
	begin, end, open := b.reached, b.t.End, a.EndTime == nil
	if !open {
		end = later(a.EndTime.UTC(), begin)
	}
	created, ready := a.CreateTime, a.ReadyTime
	if created == nil {
		created = ready
	}
	out := Attempt{
		Attempt: *a.DeepCopy(), Seconds: end.Sub(begin).Seconds(),
		Recovers: a.Trigger == jobsetv1alpha2.TriggerFailurePolicy || a.Trigger == jobsetv1alpha2.TriggerRequested ||
			a.Trigger == jobsetv1alpha2.TriggerRetry,
	}
	if ready != nil {
		out.SecondsToReady = ptr.To(max(0, ready.Sub(begin).Seconds()))
	}
	b.t.Attempts = append(b.t.Attempts, out)
	if created == nil {
		b.phase(Creating, a.Number, end, open)
		return
	}
	b.phase(Creating, a.Number, sooner(created.UTC(), end), false)
	if ready == nil {
		b.phase(Starting, a.Number, end, open)
		return
	}
	b.phase(Starting, a.Number, sooner(ready.UTC(), end), false)
	b.phase(Running, a.Number, end, open)
}

// phase adds what lasted from the last end to this one. Phases without length are left out, except open ones.
func (b *builder) phase(kind Kind, attempt int32, end time.Time, open bool) {
	begin := b.reached
	end = later(end, begin)
	if end.Equal(begin) && !open {
		return
	}
	b.t.Phases = append(b.t.Phases, Phase{Kind: kind, Attempt: attempt, Begin: begin, End: end, Seconds: end.Sub(begin).Seconds(), Open: open})
	b.reached = end
}

// gap returns why no attempt ran between one and the next.
func (b *builder) gap(before *jobsetv1alpha2.Attempt, next jobsetv1alpha2.AttemptTrigger) Kind {
	if before != nil && (before.Outcome == jobsetv1alpha2.OutcomeFailed || before.Outcome == jobsetv1alpha2.OutcomeCancelled) {
		return Stopped
	}
	if before != nil && before.EndUser != "" {
		return Suspended
	}
	if next == jobsetv1alpha2.TriggerPreemption || queued(b.js) {
		return Queued
	}
	if before != nil || meta.FindStatusCondition(b.js.Status.Conditions, jobsetv1alpha2.JobSetSuspended) != nil {
		return Suspended
	}
	return Waiting
}

// lastGap adds the time after the last attempt: until now, or until a set finished that was not running.
func (b *builder) lastGap(before *jobsetv1alpha2.Attempt) {
	if b.t.Finished && b.t.End.Sub(b.reached) < gapFrom {
		return
	}
	kind := b.gap(before, "")
	// One that was retried while it was suspended stays so.
	if !queued(b.js) && ptr.Deref(b.js.Spec.Suspend, false) && (kind == Waiting || kind == Stopped && !b.t.Finished) {
		kind = Suspended
	}
	b.phase(kind, 0, b.t.End, !b.t.Finished)
}

// queued means that a queueing system decides when the set runs.
func queued(js *jobsetv1alpha2.JobSet) bool {
	return js.Labels[jobsetv1alpha2.QueueNameKey] != "" || metav1.GetControllerOfNoCopy(js) != nil
}

// readyShare fills in the ready share of the set, as `kubectl jobset top` shows it.
func (b *builder) readyShare() {
	ready, life := helper.ReadyShareOf(b.js).At(b.now)
	b.t.ReadySeconds = ready.Seconds()
	if life > 0 {
		b.t.ReadyShare = ready.Seconds() / life.Seconds()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
