// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// What keeps a sequence that should run from doing so.

// condition returns the condition of the sequence while it is True.
func (d *diagnosis) condition(conditionType string) *metav1.Condition {
	if c := meta.FindStatusCondition(d.Sequence.Status.Conditions, conditionType); conditionTrue(c) {
		return c
	}
	return nil
}

// step is what is recorded about the current step; nil for one that has not been started.
func (d *diagnosis) step() *batchv1alpha1.SequentialJobStepStatus {
	return helper.CurrentStep(&d.Sequence.Status)
}

// stepWords name the current step, like "step 2/3 (transform)".
func (d *diagnosis) stepWords() string {
	s := snapshot.SummarizeSequence(d.Sequence)
	if s.StepName == "" {
		return "step " + s.StepOf()
	}
	return fmt.Sprintf("step %s (%s)", s.StepOf(), s.StepName)
}

// stepFact is what the status says of the current step.
func (d *diagnosis) stepFact() Fact {
	step := d.step()
	if step == nil {
		return Fact{Object: d.set(), Text: "no step has been started"}
	}
	f := Fact{Object: d.set(), Text: fmt.Sprintf("%s is %s, attempt %d, with the %s %s", d.stepWords(), step.State, step.Attempts,
		strings.ToLower(string(step.Kind)), step.ChildName)}
	if step.StartTime != nil {
		f.Time = step.StartTime
	}
	return f
}

// reconciliation reports that passes of the controller fail.
func reconciliation(d *diagnosis) []Finding {
	c := d.condition(batchv1alpha1.ConditionFailed)
	if c == nil || c.Reason != batchv1alpha1.ReasonReconciliationError {
		return nil
	}
	return []Finding{{
		Cause: ReconciliationFailed, Summary: "the controller cannot act on the sequence, and tries again: " + oneLine(c.Message),
		Evidence: []Fact{conditionFact(d.set(), c), d.stepFact()},
		Commands: []string{d.kubectl("events --for sequentialjob/%s --types=Warning", d.Name), controllerCommands()[1]},
	}}
}

// stepNameTaken reports that another object has the name of the child.
func stepNameTaken(d *diagnosis) []Finding {
	c := d.available()
	if c == nil || c.Reason != batchv1alpha1.ReasonNameConflict {
		return nil
	}
	return []Finding{d.taken(c)}
}

// childWords name the child of the current step, like "job etl-1".
func (d *diagnosis) childWords() string {
	kind := batchv1alpha1.StepKindJob
	if step := d.step(); step != nil {
		kind = step.Kind
	}
	return strings.ToLower(string(kind)) + " " + d.child()
}

// stepRefused reports that the API refuses the child.
func stepRefused(d *diagnosis) []Finding {
	c := d.available()
	if c == nil || c.Reason != batchv1alpha1.ReasonJobCreationFailed && c.Reason != batchv1alpha1.ReasonUndoneByOthers {
		c = d.condition(batchv1alpha1.ConditionResourcesUnavailable)
	}
	if c == nil {
		return nil
	}
	f := Finding{Evidence: []Fact{conditionFact(d.set(), c), d.stepFact()},
		Commands: []string{d.kubectl("events --for sequentialjob/%s --types=Warning", d.Name)}}
	if d.explainRefusal(&f, c, d.childWords()); f.Cause == "" {
		return nil
	}
	return []Finding{f}
}

// stepWaitsForPods reports that the next step waits until the pods of an earlier one, or of an earlier attempt, have ended.
func stepWaitsForPods(d *diagnosis) []Finding {
	c := meta.FindStatusCondition(d.Sequence.Status.Conditions, batchv1alpha1.ConditionProgressing)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != batchv1alpha1.ReasonWaitingForPods {
		return nil
	}
	return []Finding{{
		Cause: EarlierStepRuns, Summary: d.stepWords() + " waits: " + oneLine(c.Message), Evidence: []Fact{conditionFact(d.set(), c),
			d.stepFact()},
		Commands: []string{
			d.kubectl("get pods -o wide -l %s=%s", batchv1alpha1.SequentialJobNameKey, d.Name),
			d.kubectl("delete pod POD --grace-period=0 --force  # if its node will not come back"),
		},
	}}
}

// stepSuspended reports that another controller or a user suspends the child of the current step again and again. Kueue does so to children
// without a queue, if it is configured to.
func stepSuspended(d *diagnosis) []Finding {
	c := meta.FindStatusCondition(d.Sequence.Status.Conditions, batchv1alpha1.ConditionProgressing)
	if c == nil || c.Reason != batchv1alpha1.ReasonSuspendedByOthers {
		return nil
	}
	child := strings.Replace(d.childWords(), " ", "/", 1)
	f := Finding{Cause: JobSuspendedByOther, Summary: d.stepWords() + ": " + oneLine(c.Message), Evidence: []Fact{conditionFact(d.set(), c),
		d.stepFact()}}
	if strings.Contains(c.Message, "kueue") {
		f.Commands = append(f.Commands,
			d.kubectl("label %s %s=QUEUE  # Kueue starts it when the queue has quota", child, helper.QueueKey),
			d.kubectl("label sequentialjob %s %s=QUEUE  # for the steps that follow", d.Name, helper.QueueKey))
	}
	f.Commands = append(f.Commands, d.kubectl("get %s --show-managed-fields -o yaml", child))
	return []Finding{f}
}

// explainRefusal completes the finding by the reason of the condition. It leaves one without a cause of which others say more.
func (d *diagnosis) explainRefusal(f *Finding, c *metav1.Condition, what string) {
	switch c.Reason {
	case batchv1alpha1.ReasonJobCreationFailed, batchv1alpha1.ReasonUndoneByOthers:
		if d.refused(f, what, c.Message) == refusedInvalid {
			f.Commands = append(f.Commands, d.kubectl("edit sequentialjob %s  # correct the step: it is tried again", d.Name))
		}
	case batchv1alpha1.ReasonQuotaExceeded:
		if strings.HasPrefix(c.Message, "pods of job ") || strings.HasPrefix(c.Message, "job ") {
			return // about the pods, or about Jobs of a JobSet; their events say more
		}
		if d.refused(f, what, c.Message) != refusedQuota {
			f.Cause, f.Summary = JobRefusedByQuota, fmt.Sprintf("a quota refuses the %s: %s", what, oneLine(c.Message))
			f.Commands = append(f.Commands, d.kubectl("describe resourcequota"))
		}
	case batchv1alpha1.ReasonClusterOverloaded:
		f.Cause, f.Summary = ClusterOverloaded, fmt.Sprintf("the API does not take the %s, and the controller tries again: %s", what,
			oneLine(c.Message))
		f.Commands = append(f.Commands, "kubectl get --raw /readyz?verbose")
	case batchv1alpha1.ReasonUnschedulable:
		if len(d.live) == 0 && d.Child == nil {
			f.Cause, f.Summary = Unschedulable, "the pods of "+d.stepWords()+" cannot be scheduled: "+oneLine(c.Message)
		}
	}
}

// stepQueued says what a queue waits for. A JobSet in a queue is diagnosed as one.
func stepQueued(d *diagnosis) []Finding {
	_, queue := d.queueOwner()
	unavailable := d.condition(batchv1alpha1.ConditionResourcesUnavailable)
	noQueue := unavailable != nil && unavailable.Reason == batchv1alpha1.ReasonQueueUnavailable
	suspended := slices.ContainsFunc(d.Jobs, func(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) && !jobEnded(job) })
	waiting := helper.Phase(d.Sequence) == batchv1alpha1.PhaseWaiting || suspended
	if d.Child != nil || queue == "" || !waiting && !noQueue || len(stepElsewhere(d)) > 0 {
		return nil
	}
	findings := waitsInQueue(d, queue)
	for i := range findings {
		findings[i].Evidence = append(findings[i].Evidence, d.stepFact())
		if noQueue {
			findings[i].Evidence = append(findings[i].Evidence, conditionFact(d.set(), unavailable))
		}
	}
	return findings
}

// stepUnreadable reports that the cause is not known because the user may not read what shows it. The diagnosis of a JobSet says so itself.
func stepUnreadable(d *diagnosis) []Finding {
	if d.Child != nil || len(d.live) > 0 && len(d.notReady()) == 0 {
		return nil
	}
	return cannotRead(d)
}

// stepOfJobSet are the findings about the JobSet of the current step. That it runs, or starts, is said of the step.
func stepOfJobSet(d *diagnosis) []Finding {
	if d.Child == nil {
		return nil
	}
	var out []Finding
	for _, f := range Diagnose(d.Child).Findings {
		switch {
		case f.Cause.Normal(), f.Cause == SuspendedByOwner, f.Cause == ControllerNotRunning, f.Cause == ControllerNotActing &&
			d.Child.JobSet == nil:
			continue
		case f.Cause == NotFound:
			f = Finding{Cause: Starting, Summary: "the jobset " + d.child() + " is about to be created"}
		}
		f.Summary = d.stepWords() + ": " + f.Summary
		out = append(out, f)
	}
	return out
}

// sequenceHealth says what the sequence does when nothing else is to be said.
func sequenceHealth(d *diagnosis) []Finding {
	watch := []string{d.plugin("tree %s", d.ref())}
	step := d.step()
	if step == nil {
		return []Finding{{Cause: Starting, Summary: "starting, no problem found: " + d.stepWords() + " is next", Evidence: []Fact{d.stepFact()},
			Commands: watch}}
	}
	words := d.stepWords()
	if step.Attempts > 1 {
		words += fmt.Sprintf(", attempt %d%s", step.Attempts, d.begunBy(step))
	}
	since := ""
	if step.StartTime != nil {
		since = ", began " + ago(d.Now, step.StartTime.Time)
	}
	f := Finding{Cause: Running, Summary: "runs: " + words + since, Evidence: []Fact{d.stepFact()}, Commands: watch}
	if len(d.live) == 0 && d.Child == nil || len(d.notReady()) > 0 || step.State == batchv1alpha1.StepStarting {
		f.Cause, f.Summary = Starting, "starting, no problem found: "+words+since
	}
	return append(notReady(d), f)
}

// begunBy names the user whose action began the attempt.
func (d *diagnosis) begunBy(step *batchv1alpha1.SequentialJobStepStatus) string {
	last := d.Sequence.Status.LastAction
	if last == nil || last.Step != step.Name || last.Attempt != step.Attempts || last.User == "" {
		return ""
	}
	return fmt.Sprintf(" (%s by %s%s)", strings.ToLower(string(last.Action)), last.User, quoted(last.Reason))
}

// notReady are the live pods that are not ready.
func (d *diagnosis) notReady() (names []string) {
	for _, pod := range d.live {
		if !snapshot.PodReady(pod) {
			names = append(names, pod.Name)
		}
	}
	return names
}
