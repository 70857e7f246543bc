// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// startStep returns what the current step wants that has no child.
func startStep(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	if q.current != nil {
		return wants{}
	}
	w, _ := start(q)
	w.clock = true
	return w
}

// start returns what the current step wants before its child is created, and whether it lacks nothing else.
func start(q *sequence) (w wants, ready bool) {
	progresses := isTrue(&q.SequentialJob.Status, batchv1alpha1.ConditionProgressing)
	hold := cmp.Or(q.queue.Hold, &Hold{})
	switch _, admitted := hold.Admission.Get(); {
	case q.suspended:
		return wants{state: batchv1alpha1.StepSuspended, conditions: suspended(q.active == 0, "")}, false
	case q.queue.Hold == nil, admitted:
	case q.queue.unknown() && q.entry.State == batchv1alpha1.StepStarting && progresses:
		return wants{}, false // there was quota, and nothing says that it is gone
	default:
		w = waitForQuota(q)
		w.requeueAfter = hold.RetryAfter
		return w, false
	}
	switch q.entry.State {
	case batchv1alpha1.StepSuspended:
		w.state, w.conditions = batchv1alpha1.StepStarting, []condition{resumed()}
	case batchv1alpha1.StepWaiting:
		w.state = batchv1alpha1.StepStarting
	}
	ready = len(q.inTheWay) == 0
	if ready && waitForEarlier(q, &w) {
		return w, false
	}
	if !progresses {
		w.conditions = append(w.conditions, aboutToStart(q))
	}
	return w, ready
}

func aboutToStart(q *sequence) condition {
	return progressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d is about to start", q.index))
}

// createChild creates the child of the current step, which lacks nothing else. If the step was changed, that is stored first.
func createChild(q *sequence, _ *batchv1alpha1.SequentialJobStatus) (w wants) {
	if q.current != nil {
		return wants{}
	}
	step, found := q.step()
	switch _, ready := start(q); {
	case !ready, !found:
		return wants{}
	case q.entry.Name != step.Name || q.entry.Kind != step.Kind():
		return wants{step: &step}
	}
	w.createJob, w.createJobSet = NewChild(q.SequentialJob, step, q.entry.Attempts)
	if err := holdChild(q.queue.Hold, w.createJob, w.createJobSet); err != nil {
		message := fmt.Sprintf("Job %d cannot run where Kueue admitted the sequence: %v", step.Index, err)
		return wants{state: batchv1alpha1.StepWaiting, conditions: []condition{progressing(batchv1alpha1.ReasonWaitingForQuota, message)}}
	}
	return w
}

// childExists ends the troubles of the creation of the child. That it was stripped of its label is another one.
func childExists(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	if q.current == nil || q.current.Deleting {
		return wants{}
	}
	w := wants{conditions: []condition{available()}}
	if why := q.Stripped; why != nil && why.Reason == batchv1alpha1.ReasonUndoneByOthers {
		w.conditions = []condition{stripped(q.index, why.Message)}
	}
	if status := &q.SequentialJob.Status; !reportsRefused(status) && hasReason(status, batchv1alpha1.ConditionResourcesUnavailable,
		batchv1alpha1.ReasonQuotaExceeded, batchv1alpha1.ReasonClusterOverloaded) {
		w.troubles = []hostplan.Trouble{notUnavailable()}
	}
	return w
}

// stripped says that the controller asks the API from time to time what has become of the child, because no cache shows it.
func stripped(index int, why string) condition {
	message := fmt.Sprintf("Changes of job %d are noticed late: %s", index, why)
	c := notAvailable(batchv1alpha1.ReasonUndoneByOthers, message)
	c.event, c.byReason = warning(batchv1alpha1.ReasonUndoneByOthers, message), true
	return c
}

// followChild returns what the current step wants while its child has not ended. A child that is being deleted is gone soon, and
// its step runs again.
func followChild(q *sequence, _ *batchv1alpha1.SequentialJobStatus) wants {
	if q.current == nil || q.current.Deleting {
		return wants{}
	}
	var w wants
	switch c := *q.current; {
	case q.suspended:
		w = suspendChild(q, c)
	case c.Queued:
		w = followQueued(q, c)
	case q.queue.Hold != nil:
		w = followHeld(q, c)
	default:
		w = resumeChild(q, c)
	}
	w.clock = true
	return w
}

// seen records the child of the current step, and that it has started. A suspended child has not, whoever suspended it.
func (w *wants) seen(q *sequence, c Child) {
	w.childUID = c.UID
	if starts(q) && (!c.Suspended || c.End != "") {
		w.events = []Event{normal(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Started job %d", q.index))}
	}
}

// starts returns whether the start of the current step is still to be reported.
func starts(q *sequence) bool {
	return q.entry.State == batchv1alpha1.StepStarting || q.entry.State == batchv1alpha1.StepWaiting
}

// resumedIf returns the condition of a sequence that runs or waits, if its step was suspended.
func resumedIf(q *sequence) []condition {
	if q.entry.State == batchv1alpha1.StepSuspended {
		return []condition{resumed()}
	}
	return nil
}

// run records that the current child runs.
func run(q *sequence, c Child) wants {
	w := wants{state: batchv1alpha1.StepRunning}
	w.seen(q, c)
	w.conditions = append(resumedIf(q), progressing(batchv1alpha1.ReasonJobStarted, fmt.Sprintf("Job %d runs", q.index)))
	return w
}

// resumeChild lets a child run. It leaves a child suspended that other clients suspend again and again: each resumption would only let its
// pods start and stop.
func resumeChild(q *sequence, c Child) wants {
	contest, contested := q.Contest.Get()
	switch {
	case !c.Suspended:
		return run(q, c)
	case q.Contest.Open():
		return wants{asks: Asks{Contest: &c.ChildRef}}
	case contested:
		return yield(q, c, contest)
	}
	w := run(q, c)
	if starts(q) {
		w.state, w.conditions = batchv1alpha1.StepStarting, []condition{aboutToStart(q)}
	}
	w.suspend = []SuspendPatch{{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion}}
	return w
}

func yield(q *sequence, c Child, contest Contest) wants {
	w := wants{state: batchv1alpha1.StepWaiting}
	w.seen(q, c)
	message := fmt.Sprintf("Job %d waits: %s suspends %s %s again whenever it is resumed; the controller resumes it again at %s",
		q.index, cmp.Or(contest.By, "another client"), strings.ToLower(string(c.Kind)), c.Name, contest.Next.UTC().Format(time.RFC3339))
	waits := progressing(batchv1alpha1.ReasonSuspendedByOthers, message)
	waits.event, waits.byReason = warning(batchv1alpha1.ReasonSuspendedByOthers, message), true
	w.conditions = []condition{waits}
	w.actsAfter = max(contest.Next.Sub(q.Now.Time), time.Millisecond)
	return w
}

// suspendChild stops the current child. One that has a queue is taken out of it, since Kueue would start it again; without a
// Workload no controller starts it. While it is not known whether there is one, the child is left as it is.
func suspendChild(q *sequence, c Child) wants {
	w := wants{state: batchv1alpha1.StepSuspended, conditions: suspended(c.Suspended && !c.Busy, stopping(q, c))}
	w.seen(q, c)
	known := q.queue.Workload
	switch workload := known.Value(); {
	case c.Queued && workload != nil && workload.Active:
		w.setActive = workload.patch(false)
	case !c.Suspended && (!c.Queued || known.IsNone()):
		w.suspend = []SuspendPatch{{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion, Suspend: true}}
	}
	return w
}

// stopping returns why the current child of a suspended sequence goes on; "" if it stops.
func stopping(q *sequence, c Child) string {
	switch {
	case c.Suspended || !c.Queued || q.queue.Workload.IsKnown():
		return ""
	case q.queue.Unreadable != "":
		return fmt.Sprintf("job %d runs until its Workload can be read: %s", q.index, q.queue.Unreadable)
	}
	return fmt.Sprintf("job %d runs until its Workload is known", q.index)
}
