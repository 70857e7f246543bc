// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// createCurrent creates the child of the current step, unless the sequence is suspended or another child is in the way.
func (b *statusBuilder) createCurrent(owned family, p *Plan) {
	sj, entry := b.o.SequentialJob, entryOf(b.next)
	if helper.Suspended(sj) {
		entry.State = batchv1alpha1.StepSuspended
		b.setSuspended(owned.active == 0, "")
		return
	}
	if entry.State == batchv1alpha1.StepSuspended {
		entry.State = batchv1alpha1.StepStarting
		b.setResumed()
	}
	if b.waitForHold() {
		p.RequeueAfter = sooner(p.RequeueAfter, b.o.Queue.Hold.RetryAfter)
		return
	}
	if len(owned.inTheWay) == 0 && b.waitForEarlier(owned, p) {
		return
	}
	if !b.is(batchv1alpha1.ConditionProgressing) {
		b.setProgressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d is about to start", b.index()))
	}
	b.followClock()
	if len(owned.inTheWay) > 0 || b.index() >= len(b.steps) {
		return
	}
	step := b.steps[b.index()]
	if entry.Name != step.Name || entry.Kind != step.Kind() {
		entry.Name, entry.Kind = step.Name, step.Kind() // the step was changed; that is stored before its child is there
		return
	}
	p.CreateJob, p.CreateJobSet = NewChild(sj, step, entry.Attempts)
	b.holdChild(p)
}

// followChild follows the child of the current step while it has not ended.
func (b *statusBuilder) followChild(c Child, p *Plan) {
	if c.Deleting {
		return // it is gone soon, and its step runs again
	}
	entry := entryOf(b.next)
	b.endCreationTroubles()
	switch {
	case helper.Suspended(b.o.SequentialJob):
		b.see(c)
		b.suspendChild(c, p)
		entry.State = batchv1alpha1.StepSuspended
		b.setSuspended(c.Suspended && !c.Busy, b.stopping(c))
	case c.Queued:
		b.followQueued(c, p)
	case b.o.Queue.Hold != nil:
		b.followHeld(c, p)
	case c.Suspended && b.o.Contest != nil:
		b.yield(c)
	default:
		if c.Suspended {
			p.Suspend = append(p.Suspend, SuspendPatch{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion})
		}
		b.see(c)
		b.run(entry)
	}
	b.followClock()
	p.RequeueAfter = sooner(p.RequeueAfter, b.setUnschedulable(c))
}

// run records that the current child runs.
func (b *statusBuilder) run(entry *batchv1alpha1.SequentialJobStepStatus) {
	if entry.State == batchv1alpha1.StepSuspended {
		b.setResumed()
	}
	entry.State = batchv1alpha1.StepRunning
	b.setProgressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d runs", b.index()))
}

// yield leaves a child to those who suspend it again and again: each resumption would only let its pods start and stop.
func (b *statusBuilder) yield(c Child) {
	b.see(c)
	entryOf(b.next).State = batchv1alpha1.StepWaiting
	who := cmp.Or(b.o.Contest.By, "somebody")
	message := fmt.Sprintf("Job %d waits: %s suspends %s %s again whenever it is resumed, so that it is left suspended until somebody "+
		"resumes it",
		b.index(), who, strings.ToLower(string(c.Kind)), c.Name)
	if was := meta.FindStatusCondition(b.next.Conditions, batchv1alpha1.ConditionProgressing); was == nil ||
		was.Reason != batchv1alpha1.ReasonSuspendedByOthers {
		b.event(corev1.EventTypeWarning, batchv1alpha1.ReasonSuspendedByOthers, message)
	}
	b.setProgressing(batchv1alpha1.ReasonSuspendedByOthers, message)
}

// suspendChild stops the current child. One that has a queue is taken out of it, since Kueue would start it again; without a
// Workload it is not started by anybody. While it is not known whether there is one, the child is left as it is.
func (b *statusBuilder) suspendChild(c Child, p *Plan) {
	known := b.o.Queue.Workload
	switch w := known.Is(); {
	case c.Queued && w != nil && w.Active:
		p.SetWorkloadActive = w.patch(false)
	case !c.Suspended && (!c.Queued || known.None()):
		p.Suspend = append(p.Suspend, SuspendPatch{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion, Suspend: true})
	}
}

// stopping returns why the current child of a suspended sequence goes on; "" if it stops.
func (b *statusBuilder) stopping(c Child) string {
	q := b.o.Queue
	switch {
	case c.Suspended || !c.Queued || q.Workload.Known():
		return ""
	case q.Unreadable != "":
		return fmt.Sprintf("job %d runs until its Workload can be read: %s", b.index(), q.Unreadable)
	}
	return fmt.Sprintf("job %d runs until its Workload is known", b.index())
}

// followQueued follows a child that Kueue starts and stops. It is never unsuspended here.
func (b *statusBuilder) followQueued(c Child, p *Plan) {
	entry, w := entryOf(b.next), b.o.Queue.Workload.Is()
	if w != nil && !w.Active && w.Deactivated {
		p.SetWorkloadActive = w.patch(true)
	}
	b.see(c)
	if !c.Suspended {
		b.run(entry)
		return
	}
	if entry.State == batchv1alpha1.StepSuspended {
		b.setResumed()
	}
	entry.State = batchv1alpha1.StepWaiting
	b.setProgressing(batchv1alpha1.ReasonWaitingForQuota, b.waiting())
}

// waiting returns what a child in a queue waits for.
func (b *statusBuilder) waiting() string {
	message, q := fmt.Sprintf("Job %d waits for quota", b.index()), b.o.Queue
	if step, found := currentStep(b.o.SequentialJob); found && queueOf(b.o.SequentialJob, step) != "" {
		message += " in queue " + queueOf(b.o.SequentialJob, step)
	}
	if reason := q.waitsFor(); reason != "" {
		message += ": " + reason
	}
	return message
}

// waitsFor returns what the Workload of a child, or of the whole sequence, waits for; "" if that is not known.
func (q Queue) waitsFor() string {
	switch {
	case !q.Served:
		return "the cluster does not serve the API of Kueue"
	case q.Hold != nil && q.Hold.waitsFor(q.Unreadable) != "":
		return q.Hold.waitsFor(q.Unreadable)
	case q.Workload.Is() != nil:
		return q.Workload.Is().Message
	case q.Unreadable != "":
		return "its Workload cannot be read: " + q.Unreadable
	case !q.Workload.Known():
		return unknownWorkloads
	}
	return "Kueue has made no Workload for it yet"
}

func (w *Workload) patch(active bool) *WorkloadPatch {
	return &WorkloadPatch{Name: w.Name, UID: w.UID, ResourceVersion: w.ResourceVersion, Active: active}
}

// setSuspended records that the sequence is suspended; stopped means that no child is active, and still is why one does not stop.
func (b *statusBuilder) setSuspended(stopped bool, still string) {
	const message = "the sequence is suspended"
	if still != "" {
		still = "; " + still
	}
	b.setProgressing(batchv1alpha1.ReasonSuspended, message+still)
	if stopped && b.set(batchv1alpha1.ConditionSuspended, metav1.ConditionTrue, batchv1alpha1.ReasonSuspended, message) {
		b.event(corev1.EventTypeNormal, batchv1alpha1.ReasonSuspended, "Suspended the sequence")
	}
	b.followClock()
}

func (b *statusBuilder) setResumed() {
	if b.set(batchv1alpha1.ConditionSuspended, metav1.ConditionFalse, batchv1alpha1.ReasonResumed, "the sequence was resumed") {
		b.event(corev1.EventTypeNormal, batchv1alpha1.ReasonResumed, "Resumed the sequence")
	}
}

// followClock starts and stops the clock of the deadline: time counts while a step has begun, unless it is suspended or waits
// for quota.
func (b *statusBuilder) followClock() {
	entry := begun(b.next)
	counts := entry != nil && !helper.Suspended(b.o.SequentialJob) && b.next.CompletionTime == nil &&
		(entry.State == batchv1alpha1.StepRunning || entry.State == batchv1alpha1.StepStarting)
	switch {
	case counts && b.next.ActiveSince == nil:
		b.next.ActiveSince = ptr.To(b.o.Now)
	case !counts && b.next.ActiveSince != nil:
		b.next.ActiveSeconds = b.activeSeconds()
		b.next.ActiveSince = nil
	}
}

// activeSeconds returns the time that counts towards the deadline.
func (b *statusBuilder) activeSeconds() int64 {
	if b.next.ActiveSince == nil {
		return b.next.ActiveSeconds
	}
	return b.next.ActiveSeconds + max(0, int64(b.o.Now.Sub(b.next.ActiveSince.Time).Seconds()))
}
