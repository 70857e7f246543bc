// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Sequences that a user suspends or deletes, and sequences that have ended.

// sequenceSuspended says who suspended the sequence.
func sequenceSuspended(d *diagnosis) []Finding {
	sj := d.Sequence
	if owner := metav1.GetControllerOf(sj); owner != nil {
		return []Finding{{
			Cause:   SuspendedByOwner,
			Summary: fmt.Sprintf("suspended by its owner, %s %s, which decides when the sequence runs", owner.Kind, owner.Name),
			Evidence: []Fact{{Object: d.set(), Text: fmt.Sprintf("spec.suspend is true; the controller owner is %s %s", owner.Kind, owner.Name)},
				d.stepFact()},
			Commands: []string{d.kubectl("describe %s %s", strings.ToLower(owner.Kind), owner.Name)},
		}}
	}
	manager, since := suspendedInFields(sj)
	f := Finding{Cause: SuspendedByUser, Summary: "suspended (spec.suspend is true)", Commands: []string{d.plugin("resume %s", d.ref())}}
	last := sj.Status.LastAction
	switch {
	case last != nil && last.Action == batchv1alpha1.ActionSuspend && last.Time != nil:
		f.Summary = fmt.Sprintf("suspended by %s %s%s", last.User, ago(d.Now, last.Time.Time), quoted(last.Reason))
	case manager != "" && sj.Status.StartTime == nil:
		f.Summary = fmt.Sprintf("created suspended, with %s %s", manager, ago(d.Now, since))
	case manager != "":
		f.Summary = fmt.Sprintf("suspended with %s %s", manager, ago(d.Now, since))
	}
	written := Fact{Object: d.set(), Text: "spec.suspend is true"}
	if manager != "" {
		written = Fact{Object: d.set(), Text: "spec.suspend is true, last written with " + manager, Time: at(since)}
	}
	f.Evidence = append(f.Evidence, written, d.stepFact())
	if c := d.condition(batchv1alpha1.ConditionSuspended); c != nil {
		f.Evidence = append(f.Evidence, conditionFact(d.set(), c))
	}
	return []Finding{f}
}

// sequenceDeletion says what keeps a deleted sequence: its child, the controller that has to stop it, or the finalizer of another.
func sequenceDeletion(d *diagnosis) []Finding {
	sj := d.Sequence
	since := sj.DeletionTimestamp.Time
	held := foreignFinalizers(sj)
	others := slices.DeleteFunc(slices.Clone(held), func(f string) bool { return f == batchv1alpha1.SequentialJobFinalizer })
	if len(others) > 0 {
		return []Finding{d.keptBy(sj, others, d.kubectl("get sequentialjob %s -o jsonpath={.metadata.finalizers}", sj.Name))}
	}
	lost, _, holder := d.lostLeases()
	if len(held) > 0 && holder == "" && d.LeasesRead {
		deleted := Fact{Object: d.set(), Text: "deleted, with the finalizers " + strings.Join(sj.Finalizers, ", "), Time: at(since)}
		return []Finding{{
			Cause: FinalizerBlocksDeletion,
			Summary: fmt.Sprintf("the sequence is being deleted, but the finalizer %s keeps it until the controller has stopped the child, and "+
				"the controller does not run",
				batchv1alpha1.SequentialJobFinalizer),
			Evidence: append([]Fact{deleted}, lost...),
			Commands: append(controllerCommands(), d.removeFinalizer("sequentialjob", sj.Name, sj, batchv1alpha1.SequentialJobFinalizer)),
		}}
	}
	f := Finding{
		Cause:   Deleting,
		Summary: fmt.Sprintf("the sequence was deleted %s and waits until its child is gone", ago(d.Now, since)),
		Evidence: []Fact{{Object: d.set(), Text: fmt.Sprintf("deleted; %s and %s are left", count(len(d.Jobs), "job"), count(len(d.Pods), "pod")),
			Time: at(since)}},
		Commands: []string{d.kubectl("wait --for=delete sequentialjob/%s", sj.Name)},
	}
	return []Finding{f}
}

func sequenceCompleted(d *diagnosis) []Finding {
	c := helper.Finished(d.Sequence)
	text := fmt.Sprintf("completed %s: %s", ago(d.Now, c.LastTransitionTime.Time), count(helper.StepCount(&d.Sequence.Spec), "step"))
	if start, end := d.Sequence.Status.StartTime, d.Sequence.Status.CompletionTime; start != nil && end != nil {
		text += " in " + span(end.Time, start.Time)
	}
	return []Finding{{Cause: Completed, Summary: text, Evidence: []Fact{conditionFact(d.set(), c)},
		Commands: []string{d.plugin("timeline %s", d.ref())}}}
}

// sequenceFailed says why the sequence failed: a user cancelled it, its time was over, or a step failed.
func sequenceFailed(d *diagnosis) []Finding {
	c := helper.Finished(d.Sequence)
	when := ago(d.Now, c.LastTransitionTime.Time)
	facts := []Fact{conditionFact(d.set(), c), d.stepFact()}
	switch c.Reason {
	case batchv1alpha1.ReasonCancelled:
		text := fmt.Sprintf("%s, %s", oneLine(c.Message), when)
		if last := d.Sequence.Status.LastAction; last != nil && last.Action == batchv1alpha1.ActionCancel && last.User != "" {
			text = fmt.Sprintf("cancelled by %s %s%s", last.User, when, quoted(last.Reason))
		}
		return []Finding{{Cause: Cancelled, Summary: text, Evidence: facts, Commands: d.retry()}}
	case batchv1alpha1.ReasonDeadlineExceeded:
		return []Finding{{
			Cause: DeadlineExceeded,
			Summary: fmt.Sprintf("failed %s in %s: the sequence ran longer than its activeDeadlineSeconds of %d; suspension and waiting for "+
				"quota are not counted",
				when, d.stepWords(), ptr.Deref(d.Sequence.Spec.ActiveDeadlineSeconds, 0)),
			Evidence: facts, Commands: append([]string{d.plugin("timeline %s", d.ref())}, d.retry()...),
		}}
	}
	after := fmt.Sprintf("%s failed %s, and with it the sequence", d.stepWords(), when)
	if reason := d.Sequence.Status.Progress.FailureReason; reason != "" {
		after = fmt.Sprintf("%s failed %s (%s), and with it the sequence", d.stepWords(), when, reason)
	}
	if cause := d.stepCause(); cause != nil {
		f := d.failureFinding(cause, after)
		f.Evidence, f.Commands = append(f.Evidence, facts...), append(f.Commands, d.retry()...)
		return []Finding{f}
	}
	f := Finding{Cause: JobFailed, Summary: after, Evidence: facts, Commands: append([]string{d.plugin("logs %s", d.ref())}, d.retry()...)}
	if step := d.step(); step != nil && step.Message != "" {
		f.Summary += ": " + oneLine(step.Message)
	}
	return append(cannotRead(d), f)
}

// stepCause is the first cause of the failure of the current step: from the status, or else from the JobSet, the Job and its pods.
func (d *diagnosis) stepCause() *jobsetv1alpha2.FailureCause {
	if step := d.step(); step != nil && step.FirstCause != nil {
		return step.FirstCause
	}
	if d.Child != nil && d.Child.JobSet != nil {
		if _, cause := lastCause(d.Child.JobSet); cause != nil {
			return cause
		}
	}
	for _, job := range d.Jobs {
		if failure := failureOf(job); failure != nil {
			return firstCauseOf(job, failure, d.podsOf[job.UID])
		}
	}
	return nil
}

// retry are the commands that run a failed sequence again: from the step that failed and, if there are steps before it, from the first.
func (d *diagnosis) retry() []string {
	if owner := metav1.GetControllerOf(d.Sequence); owner != nil {
		return []string{d.kubectl("get %s %s -o yaml  # recreate it to run it again: it owns the sequence", strings.ToLower(owner.Kind),
			owner.Name)}
	}
	commands := []string{d.plugin("retry %s", d.ref())}
	if helper.CurrentIndex(&d.Sequence.Status) > 0 {
		commands = append(commands, d.plugin("retry %s --from-step %s", d.ref(), helper.Steps(&d.Sequence.Spec)[0].Name))
	}
	return commands
}
