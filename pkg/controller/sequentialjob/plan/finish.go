// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

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
	reasonReconciliationFailed = batchv1alpha1.ReasonReconciliationFailed
)

// Finish returns what to store, report and remember about a sequence, given what was observed and decided, and what became of
// it.
func Finish(o Observed, p Plan, r Results) Outcome {
	out := Outcome{
		Status: p.Status, Events: p.Events, ResourceVersion: r.ResourceVersion, RequeueAfter: p.RequeueAfter, ActsAfter: p.ActsAfter,
		RefusedSince:    hostplan.RefusedSince(o.RefusedSince, o.Now.Time, r.Refusal != nil, r.Interrupted),
		FailingSince:    hostplan.RefusedSince(o.FailingSince, o.Now.Time, r.Error != "", r.Interrupted),
		RemoveFinalizer: p.RemoveFinalizer && r.Error == "", DeleteSequentialJob: p.DeleteSequentialJob && !r.Interrupted,
	}
	out.noteDeletions(o, p, r)
	if reportsError(o, r, out.FailingSince) && (o.SequentialJob.DeletionTimestamp != nil || o.SequentialJob.Status.CompletionTime != nil) {
		out.Warnings = append(out.Warnings, Failure(r.Error)) // no condition has room for it
	}
	if o.SequentialJob.DeletionTimestamp != nil || helper.ManagedElsewhere(o.SequentialJob) {
		return out
	}
	next := cmp.Or(p.Status, &o.SequentialJob.Status).DeepCopy()
	creation := reportCreation(o, next, r, out.RefusedSince)
	created, _ := note(next, o.Now, &creation) // what may pass is reported by the next try
	failure := reportError(o, next, r, out.FailingSince)
	fails, _ := note(next, o.Now, &failure)
	out.Events = slices.Concat(p.Events, created, fails)
	out.Status = changed(o.SequentialJob, next)
	if r.Creation == NameTaken || r.Creation == NameFreed {
		out.RequeueAfter = hostplan.Sooner(out.RequeueAfter, RetryNamesAfter(o))
	}
	if r.Refusal != nil {
		out.RequeueAfter = hostplan.Sooner(out.RequeueAfter, hostplan.PassesAfter)
	}
	return out
}

// Failure is the event about a pass that fails.
func Failure(reason string) Event {
	return warning(reasonReconciliationFailed, truncated("Failed to reconcile: "+reason))
}

// noteDeletions reports what was stopped. A sequence that is being deleted does not wait for a child that the controller must
// not delete: its namespace could never go.
func (out *Outcome) noteDeletions(o Observed, p Plan, r Results) {
	for _, i := range r.Deleted {
		if note := p.Delete[i].Note; note != "" {
			out.Warnings = append(out.Warnings, normal(reasonJobStopped, note))
		}
	}
	for _, i := range r.Forbidden {
		note := fmt.Sprintf("Job %d was left to run because the controller has no permission to delete %s %s", p.Delete[i].Index,
			p.Delete[i].Kind, p.Delete[i].Name)
		out.Warnings = append(out.Warnings, warning(reasonJobNotStopped, note))
		out.RemoveFinalizer = r.Error == ""
	}
}

// reportCreation records why the child of the current step could not be created.
func reportCreation(o Observed, status *batchv1alpha1.SequentialJobStatus, r Results, since time.Time) wants {
	index := currentIndex(status)
	if r.Creation == NameTaken {
		entry := entryOf(status)
		return wants{conditions: []condition{notAvailable(batchv1alpha1.ReasonNameConflict, fmt.Sprintf(
			"a %s named %s already exists and does not belong to the sequence; job %d starts once that one is deleted", entry.Kind,
			entry.ChildName, index))}}
	}
	if r.Refusal == nil {
		return wants{}
	}
	message := fmt.Sprintf("Job %d could not be created: %s", index, r.Refusal.Message)
	switch {
	case r.Refusal.Reason == batchv1alpha1.ReasonQuotaExceeded:
		return wants{troubles: []hostplan.Trouble{unavailable(batchv1alpha1.ReasonQuotaExceeded, message)}}
	case r.Refusal.MayPass:
		t := unavailable(batchv1alpha1.ReasonClusterOverloaded, message)
		t.Since, t.After = since, hostplan.PassesAfter
		return wants{troubles: []hostplan.Trouble{t}}
	case r.Refusal.Reason == batchv1alpha1.ReasonUndoneByOthers:
		if existing := r.Existing; existing != nil && isCurrent(o.SequentialJob, *existing) {
			return wants{childUID: existing.UID, conditions: []condition{stripped(currentIndex(&o.SequentialJob.Status), r.Refusal.Message)}}
		}
		return refused(batchv1alpha1.ReasonUndoneByOthers, message)
	}
	step, _ := look(o).step()
	return refused(batchv1alpha1.ReasonJobCreationFailed,
		fmt.Sprintf("Job %d could not be created: %s", index, asWritten(step, r.Refusal.Message)))
}

// refused records that the child is not created, and what must change first.
func refused(reason, message string) wants {
	c := notAvailable(reason, message)
	c.event = warning(reason, message)
	return wants{conditions: []condition{c}}
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

// reportsError returns whether the failure of the pass is reported. One that may pass is not unless it has lasted.
func reportsError(o Observed, r Results, since time.Time) bool {
	return r.Error != "" && (!r.MayPass || o.Now.Sub(since) >= hostplan.PassesAfter)
}

// reportError records that passes fail, or that one has succeeded again.
func reportError(o Observed, status *batchv1alpha1.SequentialJobStatus, r Results, since time.Time) wants {
	switch {
	case status.CompletionTime == nil && (reportsError(o, r, since) || r.Error != "" && reconciliationFails(status)):
		message := "Failed to reconcile: " + r.Error
		c := failed(batchv1alpha1.ReasonReconciliationError, truncated(message))
		c.event = warning(reasonReconciliationFailed, message)
		return wants{conditions: []condition{c}}
	case r.Error == "" && reconciliationFails(status) && !r.Interrupted:
		return wants{conditions: []condition{notFailed(batchv1alpha1.ReasonReconciled, "the sequence was reconciled")}}
	}
	return wants{}
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
