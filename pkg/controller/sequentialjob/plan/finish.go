// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Reasons of events that are no reasons of conditions.
const (
	reasonSpecChanged          = "SpecChanged"
	reasonJobVanished          = "JobVanished"
	reasonJobStopped           = "JobStopped"
	reasonJobNotStopped        = "JobNotStopped"
	reasonReconciliationFailed = "ReconciliationFailed"
)

// Finish returns what to store, report and remember about a sequence, given what was observed and decided, and what became of
// it.
func Finish(o Observed, p Plan, r Results) Outcome {
	out := Outcome{
		Status: p.Status, Events: p.Events, ResourceVersion: r.ResourceVersion, RequeueAfter: p.RequeueAfter,
		RefusedSince:    hostplan.RefusedSince(o.RefusedSince, o.Now.Time, r.Refusal != nil, r.Interrupted),
		RemoveFinalizer: p.RemoveFinalizer && r.Error == "", DeleteSequentialJob: p.DeleteSequentialJob && !r.Interrupted,
	}
	out.noteDeletions(o, p, r)
	if r.Error != "" && (o.SequentialJob.DeletionTimestamp != nil || o.SequentialJob.Status.CompletionTime != nil) {
		out.Warnings = append(out.Warnings, Failure(r.Error)) // no condition has room for it
	}
	if o.SequentialJob.DeletionTimestamp != nil || helper.ManagedElsewhere(o.SequentialJob) {
		return out
	}
	st := newStatus(o)
	if p.Status != nil {
		st.next = p.Status.DeepCopy()
	}
	st.events = p.Events
	st.noteCreation(p, r, out.RefusedSince)
	st.noteError(r)
	out.Status, out.Events = st.result()
	if r.Creation == NameTaken || r.Creation == NameFreed {
		out.RequeueAfter = sooner(out.RequeueAfter, RetryNamesAfter(o))
	}
	if r.Refusal != nil {
		out.RequeueAfter = sooner(out.RequeueAfter, hostplan.PassesAfter)
	}
	return out
}

// Failure is the event about a pass that fails.
func Failure(reason string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reasonReconciliationFailed, Note: truncated("Failed to reconcile: " + reason)}
}

// noteDeletions reports what was stopped. A sequence that is being deleted does not wait for a child that the controller must
// not delete: its namespace could never go.
func (out *Outcome) noteDeletions(o Observed, p Plan, r Results) {
	for _, i := range r.Deleted {
		if note := p.Delete[i].Note; note != "" {
			out.Warnings = append(out.Warnings, Event{Type: corev1.EventTypeNormal, Reason: reasonJobStopped, Note: note})
		}
	}
	for _, i := range r.Forbidden {
		note := fmt.Sprintf("Job %d was left to run because the controller has no permission to delete %s %s", p.Delete[i].Index,
			p.Delete[i].Kind, p.Delete[i].Name)
		out.Warnings = append(out.Warnings, Event{Type: corev1.EventTypeWarning, Reason: reasonJobNotStopped, Note: note})
		out.RemoveFinalizer = r.Error == ""
	}
}

// noteCreation records why the child could not be created.
func (b *statusBuilder) noteCreation(p Plan, r Results, since time.Time) {
	switch {
	case r.Creation == NameTaken:
		b.set(batchv1alpha1.ConditionAvailable, metav1.ConditionFalse, batchv1alpha1.ReasonNameConflict, b.nameConflict())
	case r.Refusal == nil:
		return
	case r.Refusal.Reason == OutOfQuota:
		b.setUnavailable(batchv1alpha1.ReasonQuotaExceeded, fmt.Sprintf("Job %d could not be created: %s", b.index(), r.Refusal.Message))
	case r.Refusal.Reason == Overloaded:
		if b.o.Now.Sub(since) >= hostplan.PassesAfter {
			b.setUnavailable(batchv1alpha1.ReasonClusterOverloaded, fmt.Sprintf("Job %d could not be created: %s", b.index(), r.Refusal.Message))
		}
	case r.Refusal.Reason == UndoneByOthers:
		b.refuse(batchv1alpha1.ReasonUndoneByOthers, r.Refusal.Message)
	default:
		b.refuse(batchv1alpha1.ReasonJobCreationFailed, asWritten(b.steps[b.index()], r.Refusal.Message))
	}
}

// refuse records that the child is not created, and what must change first.
func (b *statusBuilder) refuse(reason, why string) {
	message := fmt.Sprintf("Job %d could not be created: %s", b.index(), why)
	if b.set(batchv1alpha1.ConditionAvailable, metav1.ConditionFalse, reason, message) {
		b.event(corev1.EventTypeWarning, reason, message)
	}
}

// RetryNamesAfter returns when to try again for a taken name: after as long as it has been waited for so far, within limits.
// No watch shows when an object without our labels is gone.
func RetryNamesAfter(o Observed) time.Duration {
	const soonest, latest = time.Second, 30 * time.Second
	c := meta.FindStatusCondition(o.SequentialJob.Status.Conditions, batchv1alpha1.ConditionAvailable)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != batchv1alpha1.ReasonNameConflict {
		return soonest
	}
	return min(max(o.Now.Sub(c.LastTransitionTime.Time), soonest), latest)
}

func (b *statusBuilder) nameConflict() string {
	entry := entryOf(b.next)
	return fmt.Sprintf("a %s named %s already exists and does not belong to the sequence; job %d starts once that one is deleted", entry.Kind,
		entry.ChildName, b.index())
}

// setUnavailable reports that the cluster lacks resources for the current step. The message stays while the reason does: the
// words of a quota change with each try.
func (b *statusBuilder) setUnavailable(reason, message string) {
	if b.is(batchv1alpha1.ConditionResourcesUnavailable) && b.hasReason(batchv1alpha1.ConditionResourcesUnavailable, reason) {
		return
	}
	b.set(batchv1alpha1.ConditionResourcesUnavailable, metav1.ConditionTrue, reason, message)
	b.event(corev1.EventTypeWarning, reason, message)
}

// endCreationTroubles records that the child is there.
func (b *statusBuilder) endCreationTroubles() {
	b.setAvailable()
	if b.hasReason(batchv1alpha1.ConditionResourcesUnavailable, batchv1alpha1.ReasonQuotaExceeded, batchv1alpha1.ReasonClusterOverloaded) {
		b.endUnavailable()
	}
}

// endTroubles records that a step has ended, whatever it lacked.
func (b *statusBuilder) endTroubles() {
	b.endUnavailable()
	b.endHold("the current job has ended")
}

func (b *statusBuilder) endUnavailable() {
	b.set(batchv1alpha1.ConditionResourcesUnavailable, metav1.ConditionFalse, batchv1alpha1.ReasonResourcesAvailable,
		"the current job has what it needs")
}

// noteError records that the pass failed, or that one has succeeded again.
func (b *statusBuilder) noteError(r Results) {
	known := reconciliationFails(b.next)
	switch {
	case r.Error != "" && b.next.CompletionTime == nil:
		message := "Failed to reconcile: " + r.Error
		if b.set(batchv1alpha1.ConditionFailed, metav1.ConditionTrue, batchv1alpha1.ReasonReconciliationError, truncated(message)) {
			b.event(corev1.EventTypeWarning, reasonReconciliationFailed, message)
		}
	case r.Error == "" && known != nil && !r.Interrupted:
		b.set(batchv1alpha1.ConditionFailed, metav1.ConditionFalse, batchv1alpha1.ReasonReconciled, "the sequence was reconciled")
	}
}

// pathOfChild matches the beginning of a path in the spec of a child, and pathOfContainer that of a container.
var (
	pathOfChild     = regexp.MustCompile(`(^|[^\w.\]/"])spec\.`)
	pathOfContainer = regexp.MustCompile(`(^|[^\w.\]/"])spec\.template\.spec\.containers\[0\]`)
)

// asWritten replaces paths in the spec of a child by those at which users wrote the same in the sequence.
func asWritten(step helper.Step, message string) string {
	switch {
	case step.JobSet != nil:
		return pathOfChild.ReplaceAllString(message, fmt.Sprintf("${1}spec.steps[%d].jobSet.spec.", step.Index))
	case step.Job != nil:
		return pathOfChild.ReplaceAllString(message, fmt.Sprintf("${1}spec.steps[%d].job.spec.", step.Index))
	case step.InSteps:
		return pathOfContainer.ReplaceAllString(message, fmt.Sprintf("${1}spec.steps[%d].container", step.Index))
	}
	return pathOfContainer.ReplaceAllString(message, fmt.Sprintf("${1}spec.containers[%d]", step.Index))
}
