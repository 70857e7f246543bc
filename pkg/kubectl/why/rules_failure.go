// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Why a set failed, and why it fails again and again.

// causeOfReason returns the cause of a failure by its reason; empty for an exit code, or if nothing more is known than that the Job failed.
func causeOfReason(reason string) Cause {
	switch reason {
	case helper.ReasonOOMKilled:
		return OutOfMemory
	case helper.ReasonDeadlineExceeded:
		return DeadlineExceeded
	}
	causes := map[helper.Interruption]Cause{helper.Evicted: Evicted, helper.Preempted: Preempted, helper.LostNode: NodeLost}
	return causes[helper.InterruptionOf(reason)]
}

func failed(d *diagnosis) []Finding {
	js := d.JobSet
	c := d.endCondition()
	when := ago(d.Now, c.LastTransitionTime.Time)
	history := d.history()
	switch c.Reason {
	case jobsetv1alpha2.ReasonCancelled:
		return []Finding{{
			Cause: Cancelled, Summary: fmt.Sprintf("%s, %s", oneLine(c.Message), when),
			Evidence: append([]Fact{conditionFact(d.set(), c)}, history...), Commands: []string{d.runAgain("")},
		}}
	case helper.ReasonDeadlineExceeded:
		return []Finding{{
			Cause: DeadlineExceeded,
			Summary: fmt.Sprintf("failed %s: the set ran longer than its activeDeadlineSeconds of %d", when,
				ptr.Deref(js.Spec.ActiveDeadlineSeconds, 0)),
			Evidence: append([]Fact{conditionFact(d.set(), c)}, history...), Commands: []string{d.plugin("timeline %s", js.Name)},
		}}
	}
	var findings []Finding
	cause := d.causeOfFailure(c)
	after := fmt.Sprintf("the set failed %s, after %s of the set", when, count(int(js.Status.Restarts), "restart"))
	if cause != nil {
		f := d.failureFinding(cause, after)
		f.Evidence = append(append(f.Evidence, conditionFact(d.set(), c)), history...)
		findings = append(findings, f)
	}
	if c.Reason == helper.ReasonReachedMaxRestarts {
		findings = append(findings, d.maxRestarts(c, cause, when, history))
	}
	if len(findings) == 0 {
		findings = append(findings, Finding{
			Cause: JobFailed, Summary: fmt.Sprintf("failed %s: %s", when, oneLine(c.Message)),
			Evidence: append([]Fact{conditionFact(d.set(), c)}, history...),
			Commands: []string{d.kubectl("get jobs,pods -l %s=%s", jobsetv1alpha2.JobSetNameKey, js.Name)},
		})
	}
	return findings
}

func (d *diagnosis) maxRestarts(c *metav1.Condition, cause *jobsetv1alpha2.FailureCause, when string, history []Fact) Finding {
	js := d.JobSet
	limit := int(helper.RestartLimit(js))
	f := Finding{
		Cause: MaxRestartsReached,
		Summary: fmt.Sprintf("failed %s: maxRestarts is reached (%d of %s)", when, int(helper.CountedRestarts(&js.Status)),
			count(limit, "restart")),
		Evidence: append([]Fact{conditionFact(d.set(), c)}, history...),
		Commands: []string{d.plugin("timeline %s", js.Name), d.plugin("logs %s --first-failed", js.Name), d.runAgain(" --max-restarts 1")},
	}
	if policy := js.Spec.FailurePolicy; policy != nil && policy.RestartStrategy == jobsetv1alpha2.RestartStrategyInPlaceRestart {
		f.Summary = fmt.Sprintf("failed %s: maxRestarts is reached (%s, in place or of Jobs)", when, count(limit, "restart"))
	}
	if limit == 0 {
		f.Summary = fmt.Sprintf("failed %s: maxRestarts is 0, so the first failure ends the set", when)
	}
	if cause != nil {
		f.Summary += "; the last failure: " + describeCause(cause)
		f.Evidence = append([]Fact{causeFact(cause)}, f.Evidence...)
	}
	return f
}

// runAgain is the command by which a failed set comes to run again, with flags for a retry. The server does not retry what a queue or an
// owner decides about: they have seen it finish.
func (d *diagnosis) runAgain(with string) string {
	js := d.JobSet
	if queue, queued := js.Labels[jobsetv1alpha2.QueueNameKey]; queued {
		return d.kubectl("get jobset %s -o yaml  # recreate it to run it again: the queue %s does not run a finished set again", js.Name, queue)
	}
	if owner := metav1.GetControllerOf(js); owner != nil {
		return d.kubectl("get %s %s -o yaml  # recreate it to run it again: it owns the set", strings.ToLower(owner.Kind), owner.Name)
	}
	return d.plugin("retry %s", js.Name) + with
}

// causeOfFailure returns the first cause: from the history, or else from the Jobs and pods that are left.
func (d *diagnosis) causeOfFailure(c *metav1.Condition) *jobsetv1alpha2.FailureCause {
	if a := helper.CurrentAttempt(&d.JobSet.Status); a != nil && a.FirstCause != nil {
		return a.FirstCause
	}
	name := helper.FirstFailedJob(c.Message)
	for _, job := range d.Jobs {
		failure := helper.TrueJobCondition(job, batchv1.JobFailed)
		if failure == nil || name != "" && job.Name != name {
			continue
		}
		return firstCauseOf(job, failure, d.podsOf[job.UID])
	}
	return nil
}

func classify(cause *jobsetv1alpha2.FailureCause) Cause {
	if known := causeOfReason(cause.Reason); known != "" {
		return known
	}
	if cause.ExitCode != nil {
		return ExitCode
	}
	return JobFailed
}

// failureFinding is a failure with what followed from it.
func (d *diagnosis) failureFinding(cause *jobsetv1alpha2.FailureCause, then string) Finding {
	f := Finding{Cause: classify(cause), Summary: describeCause(cause) + "; " + then, Evidence: []Fact{causeFact(cause)}}
	logs := d.plugin("logs %s --first-failed", d.ref())
	switch f.Cause {
	case DeadlineExceeded:
		f.Summary = fmt.Sprintf("the job %s ran longer than its activeDeadlineSeconds; %s", cause.Job, then)
		f.Commands = []string{d.kubectl("describe job %s", cause.Job), d.plugin("timeline %s", d.ref())}
	case OutOfMemory:
		f.Commands = append([]string{logs}, d.usage()...)
	case NodeLost:
		f.Commands = []string{"kubectl describe node " + cause.Node}
		if node, read := d.Nodes[cause.Node]; read && lost(node) {
			f.Evidence = append(f.Evidence, nodeFact(cause.Node, node))
		}
	case Evicted, Preempted:
		f.Commands = []string{d.kubectl("events --types=Warning"), d.plugin("timeline %s", d.ref())}
	case JobFailed:
		f.Commands = []string{d.kubectl("describe job %s", cause.Job)}
	default:
		f.Commands = []string{logs, d.plugin("timeline %s", d.ref())}
	}
	return f
}

// describeCause is a failure in words.
func describeCause(c *jobsetv1alpha2.FailureCause) string {
	who := "the job " + c.Job
	if c.Pod != "" {
		who = "pod " + c.Pod
	}
	if c.Container != "" {
		who = "container " + c.Container + " of " + who
	}
	if c.Node != "" {
		who += " on node " + c.Node
	}
	what := "failed"
	switch kind := classify(c); {
	case kind == OutOfMemory:
		what = "was ended because it used more memory than its limit"
	case kind == Evicted:
		what = fmt.Sprintf("was evicted (%s)", c.Reason)
	case kind == Preempted:
		what = "was preempted by a pod of higher priority"
	case kind == NodeLost:
		what = fmt.Sprintf("was lost with its node (%s)", c.Reason)
	case c.ExitCode != nil:
		what = fmt.Sprintf("ended with exit code %d", *c.ExitCode)
		if c.Signal != nil && *c.Signal != 0 {
			what += fmt.Sprintf(" (signal %d)", *c.Signal)
		}
	case c.Reason != "":
		what += " (" + c.Reason + ")"
	}
	return who + " " + what + quoted(c.Message)
}

func causeFact(c *jobsetv1alpha2.FailureCause) Fact {
	f := Fact{Object: object("job", c.Job)}
	if c.Pod != "" {
		f.Object = object("pod", c.Pod)
	}
	parts := []string{"failed first"}
	if c.Reason != "" {
		parts = append(parts, "reason "+c.Reason)
	}
	if c.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *c.ExitCode))
	}
	if c.Node != "" {
		parts = append(parts, "node "+c.Node)
	}
	f.Text = strings.Join(parts, ", ")
	if c.Time != nil {
		f.Time = c.Time
	}
	return f
}

// history sums up the attempts that ended, newest first.
func (d *diagnosis) history() []Fact {
	attempts := d.JobSet.Status.Attempts
	var facts []Fact
	for i := len(attempts) - 1; i >= 0 && len(facts) < maxFacts; i-- {
		a := &attempts[i]
		if a.EndTime == nil {
			continue
		}
		text := fmt.Sprintf("attempt %d (%s): %s", a.Number, a.Trigger, a.Outcome)
		if a.RequestTime != nil {
			text += " after " + span(a.EndTime.Time, a.RequestTime.Time)
		}
		if a.FirstCause != nil {
			text += ", " + describeCause(a.FirstCause)
		} else if a.EndUser != "" {
			text += ", by " + a.EndUser + quoted(a.EndReason)
		}
		facts = append(facts, Fact{Object: d.set(), Text: text, Time: at(a.EndTime.Time)})
	}
	return facts
}

const (
	// often is how many attempts in a row have to fail alike before the failure, and not the restart, is the cause.
	often = 2
	// recently is how long ago the last of them may be.
	recently = time.Hour
)

// failedAgain looks for a set that is restarted again and again for the same failure.
func failedAgain(d *diagnosis) []Finding {
	if d.allUp() {
		return nil
	}
	var first *jobsetv1alpha2.Attempt
	alike := 0
	attempts := d.JobSet.Status.Attempts
	for i := len(attempts) - 1; i >= 0; i-- {
		a := &attempts[i]
		if a.EndTime == nil {
			continue
		}
		if a.FirstCause == nil || first != nil && !sameFailure(a.FirstCause, first.FirstCause) {
			break
		}
		if first == nil {
			first = a
		}
		alike++
	}
	if alike < often || d.Now.Sub(first.EndTime.Time) > recently {
		return nil
	}
	f := d.failureFinding(first.FirstCause, fmt.Sprintf("the last %d attempts ended with the same failure, and the set was restarted each "+
		"time", alike))
	f.Evidence = append(f.Evidence, d.history()...)
	return []Finding{f}
}

func sameFailure(a, b *jobsetv1alpha2.FailureCause) bool {
	return a.Reason == b.Reason && ptr.Deref(a.ExitCode, 0) == ptr.Deref(b.ExitCode, 0) && a.Container == b.Container
}
