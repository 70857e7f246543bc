// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// startStep returns what the current step wants that has no child: that it waits, or that it is ready.
func startStep(o Observed, owned family) wants {
	sj, entry := o.SequentialJob, currentEntry(o.SequentialJob)
	if helper.Suspended(sj) {
		return wants{state: batchv1alpha1.StepSuspended, conditions: suspended(owned.active == 0, "")}
	}
	switch q, hold := o.queue(), o.queue().Hold; {
	case hold == nil || hold.Quota == QuotaHeld:
	case q.unknown() && entry.State == batchv1alpha1.StepStarting && isTrue(&sj.Status, batchv1alpha1.ConditionProgressing):
		return wants{} // there was quota, and nothing says that it is gone
	default:
		w := waitForQuota(o)
		w.requeueAfter = hold.RetryAfter
		return w
	}
	w := wants{ready: len(owned.inTheWay) == 0}
	switch entry.State {
	case batchv1alpha1.StepSuspended:
		w.state, w.conditions = batchv1alpha1.StepStarting, []condition{resumed()}
	case batchv1alpha1.StepWaiting:
		w.state = batchv1alpha1.StepStarting
	}
	if w.ready && waitForEarlier(o, owned, &w) {
		return w
	}
	if !isTrue(&sj.Status, batchv1alpha1.ConditionProgressing) {
		w.conditions = append(w.conditions, aboutToStart(o))
	}
	return w
}

func aboutToStart(o Observed) condition {
	return progressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d is about to start", currentIndex(&o.SequentialJob.Status)))
}

// createChild creates the child of the current step, which lacks nothing else. If the step was changed, that is stored first.
func createChild(o Observed) (w wants) {
	sj, entry := o.SequentialJob, currentEntry(o.SequentialJob)
	step, found := currentStep(sj)
	switch {
	case !found:
		return wants{}
	case entry.Name != step.Name || entry.Kind != step.Kind():
		return wants{step: &step}
	}
	w.createJob, w.createJobSet = NewChild(sj, step, entry.Attempts)
	if err := holdChild(o.queue().Hold, w.createJob, w.createJobSet); err != nil {
		message := fmt.Sprintf("Job %d cannot run where Kueue admitted the sequence: %v", step.Index, err)
		return wants{state: batchv1alpha1.StepWaiting, conditions: []condition{progressing(batchv1alpha1.ReasonWaitingForQuota, message)}}
	}
	return w
}

// childExists ends the troubles of the creation of the child. That it was stripped of its label is another one.
func childExists(o Observed) wants {
	w := wants{conditions: []condition{available()}}
	if why := o.Stripped; why != nil && why.Reason == UndoneByOthers {
		w.conditions = []condition{stripped(o, why.Message)}
	}
	if status := &o.SequentialJob.Status; !reportsRefused(status) && hasReason(status, batchv1alpha1.ConditionResourcesUnavailable,
		batchv1alpha1.ReasonQuotaExceeded, batchv1alpha1.ReasonClusterOverloaded) {
		w.conditions = append(w.conditions, notUnavailable())
	}
	return w
}

// stripped says that the controller asks the API from time to time what has become of the child, because no cache shows it.
func stripped(o Observed, why string) condition {
	message := fmt.Sprintf("Changes of job %d are noticed late: %s", currentIndex(&o.SequentialJob.Status), why)
	c := notAvailable(batchv1alpha1.ReasonUndoneByOthers, message)
	c.event, c.byReason = warning(batchv1alpha1.ReasonUndoneByOthers, message), true
	return c
}

// followChild returns what the current step wants while its child has not ended.
func followChild(o Observed, c Child) wants {
	switch {
	case helper.Suspended(o.SequentialJob):
		return suspendChild(o, c)
	case c.Queued:
		return followQueued(o, c)
	case o.queue().Hold != nil:
		return followHeld(o, c)
	}
	return resumeChild(o, c)
}

// seen records the child of the current step, and that it has started. A suspended child has not, whoever suspended it.
func seen(o Observed, c Child) wants {
	w := wants{childUID: c.UID}
	if starts(o) && (!c.Suspended || c.End != "") {
		w.events = []Event{normal(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Started job %d", currentIndex(&o.SequentialJob.Status)))}
	}
	return w
}

// starts returns whether the start of the current step is still to be reported.
func starts(o Observed) bool {
	state := currentEntry(o.SequentialJob).State
	return state == batchv1alpha1.StepStarting || state == batchv1alpha1.StepWaiting
}

// resumedIf returns the condition of a sequence that runs or waits, if its step was suspended.
func resumedIf(o Observed) []condition {
	if currentEntry(o.SequentialJob).State == batchv1alpha1.StepSuspended {
		return []condition{resumed()}
	}
	return nil
}

// run records that the current child runs.
func run(o Observed, c Child) wants {
	w := seen(o, c)
	w.state = batchv1alpha1.StepRunning
	w.conditions = append(resumedIf(o), progressing(batchv1alpha1.ReasonJobStarted,
		fmt.Sprintf("Job %d runs", currentIndex(&o.SequentialJob.Status))))
	return w
}

// resumeChild lets a child run. It leaves a child suspended that other clients suspend again and again: each resumption would only let its
// pods start and stop.
func resumeChild(o Observed, c Child) wants {
	switch {
	case c.Suspended && o.Contest.Open():
		return wants{asks: Asks{Contest: &c.ChildRef}}
	case c.Suspended && !o.Contest.IsNone():
		return yield(o, c)
	case c.Suspended:
		w := run(o, c)
		if starts(o) {
			w.state, w.conditions = batchv1alpha1.StepStarting, []condition{aboutToStart(o)}
		}
		w.suspend = []SuspendPatch{{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion}}
		return w
	}
	return run(o, c)
}

func yield(o Observed, c Child) wants {
	w := seen(o, c)
	w.state = batchv1alpha1.StepWaiting
	contest := o.Contest.Value()
	who := cmp.Or(contest.By, "another client")
	message := fmt.Sprintf("Job %d waits: %s suspends %s %s again whenever it is resumed; the controller resumes it again at %s",
		currentIndex(&o.SequentialJob.Status), who, strings.ToLower(string(c.Kind)), c.Name, contest.Next.UTC().Format(time.RFC3339))
	waits := progressing(batchv1alpha1.ReasonSuspendedByOthers, message)
	waits.event, waits.byReason = warning(batchv1alpha1.ReasonSuspendedByOthers, message), true
	w.conditions = []condition{waits}
	w.actsAfter = max(contest.Next.Sub(o.Now.Time), time.Millisecond)
	return w
}

// suspendChild stops the current child. One that has a queue is taken out of it, since Kueue would start it again; without a
// Workload no controller starts it. While it is not known whether there is one, the child is left as it is.
func suspendChild(o Observed, c Child) wants {
	w := seen(o, c)
	w.state, w.conditions = batchv1alpha1.StepSuspended, suspended(c.Suspended && !c.Busy, stopping(o, c))
	known := o.queue().Workload
	switch workload := known.Value(); {
	case c.Queued && workload != nil && workload.Active:
		w.setActive = workload.patch(false)
	case !c.Suspended && (!c.Queued || known.IsNone()):
		w.suspend = []SuspendPatch{{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion, Suspend: true}}
	}
	return w
}

// stopping returns why the current child of a suspended sequence goes on; "" if it stops.
func stopping(o Observed, c Child) string {
	q, index := o.queue(), currentIndex(&o.SequentialJob.Status)
	switch {
	case c.Suspended || !c.Queued || q.Workload.IsKnown():
		return ""
	case q.Unreadable != "":
		return fmt.Sprintf("job %d runs until its Workload can be read: %s", index, q.Unreadable)
	}
	return fmt.Sprintf("job %d runs until its Workload is known", index)
}
