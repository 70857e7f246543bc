// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// counts are the Jobs of a set by how far they are.
type counts struct {
	// total is the number of Jobs that the set has once all exist.
	total int
	// blind means that old and created are not known.
	blind bool
	// old counts the Jobs that go away: of an earlier attempt, or being deleted.
	old int
	// The others count Jobs of the current attempt: created counts all of them, ready also Jobs that succeeded, unfinished Jobs that neither
	// succeeded nor failed, and running Jobs with pods, which may be terminating.
	created, ready, unfinished, running int
}

// view is a set as it was read.
type view struct {
	*snapshot.Set
	// blind means that the user may not read the Jobs: then all is known from the status of the set.
	blind bool
}

// look returns the progress of the set. The attempt is the one that the action began, and uid that of the set it was done on.
func look(g Goal, set view, uid types.UID, attempt int32) Progress {
	js, n := set.JobSet, set.count()
	switch {
	case js.UID != uid:
		return Progress{Failure: "the set was deleted, and another one created under its name"}
	case g == GoalStopped:
		return Progress{Reached: n.old+n.unfinished == 0, Text: stopping(n)}
	case g == GoalSuspended:
		return suspendProgress(js, n)
	}
	return readyProgress(js, n, attempt)
}

func stopping(n counts) string {
	switch {
	case n.old+n.unfinished == 0:
		return "no Job is running"
	case n.blind:
		return cli.Count(n.unfinished, "Job") + " to be deleted"
	}
	return fmt.Sprintf("%s to be deleted, %d being deleted", cli.Count(n.unfinished, "Job"), n.old)
}

func suspendProgress(js *jobsetv1alpha2.JobSet, n counts) Progress {
	finished, _ := helper.Finished(js)
	switch {
	case finished != "":
		return Progress{Failure: "the set finished in the meantime: " + finish(js)}
	case !ptr.Deref(js.Spec.Suspend, false):
		return Progress{Failure: "the set was resumed in the meantime" + byWhom(helper.CurrentAttempt(&js.Status))}
	case n.running == 0 && meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.JobSetSuspended):
		return Progress{Reached: true, Text: "suspended, no pod is left"}
	}
	return Progress{Text: fmt.Sprintf("%d of %d Jobs stopped", n.total-n.running, n.total)}
}

func readyProgress(js *jobsetv1alpha2.JobSet, n counts, attempt int32) Progress {
	current := helper.CurrentAttempt(&js.Status)
	finished, _ := helper.Finished(js)
	switch {
	case finished == helper.PhaseCompleted:
		return Progress{Reached: true, Text: "completed"}
	case finished != "":
		return Progress{Failure: finish(js)}
	case ptr.Deref(js.Spec.Suspend, false):
		return Progress{Failure: "the set is suspended" + endedBy(current) + "; " + whatResumes(js)}
	case current == nil && n.old == 0 && n.ready == n.total:
		return Progress{Reached: true, Text: fmt.Sprintf("%d of %d Jobs ready", n.ready, n.total)}
	case current != nil && current.Number >= attempt && current.EndTime == nil && current.ReadyTime != nil:
		return Progress{Reached: true, Text: fmt.Sprintf("%d of %d Jobs ready in attempt %d%s", n.total, n.total, current.Number, took(current))}
	}
	return Progress{Text: startingText(js, n, current, attempt)}
}

// startingText describes how far the attempt is that the action began, or a later one.
func startingText(js *jobsetv1alpha2.JobSet, n counts, current *jobsetv1alpha2.Attempt, attempt int32) string {
	var parts []string
	if current != nil && current.Number > attempt {
		parts = append(parts, fmt.Sprintf("attempt %d after attempt %d %s", current.Number, current.Number-1, ending(js, current.Number-1)))
	}
	if n.old > 0 {
		parts = append(parts, cli.Count(n.old, "old Job")+" to be deleted")
	}
	if !n.blind {
		parts = append(parts, fmt.Sprintf("%d of %d created", n.created, n.total))
	}
	parts = append(parts, fmt.Sprintf("%d of %d ready", n.ready, n.total))
	return strings.Join(parts, ", ")
}

// whatResumes says what lets a suspended set run. The server does not resume what a queue or an owner decides about.
func whatResumes(js *jobsetv1alpha2.JobSet) string {
	if queue, queued := js.Labels[jobsetv1alpha2.QueueNameKey]; queued {
		return "its queue " + queue + " resumes it"
	}
	if owner := metav1.GetControllerOf(js); owner != nil {
		return fmt.Sprintf("its owner, %s %s, resumes it", owner.Kind, owner.Name)
	}
	return "run `kubectl jobset resume " + js.Name + "` to resume it"
}

func took(a *jobsetv1alpha2.Attempt) string {
	if a.RequestTime == nil || a.ReadyTime == nil {
		return ""
	}
	return " after " + cli.Duration(a.ReadyTime.Sub(a.RequestTime.Time))
}

// finish describes how the set failed or completed, with the first cause if it is known.
func finish(js *jobsetv1alpha2.JobSet) string {
	text, c := helper.Finished(js)
	if c != nil {
		text = fmt.Sprintf("%s (%s): %s", c.Type, c.Reason, c.Message)
	}
	if a := helper.CurrentAttempt(&js.Status); a != nil && a.FirstCause != nil {
		text += "; first cause: " + cause(a.FirstCause)
	}
	return text
}

// ending describes how an earlier attempt ended.
func ending(js *jobsetv1alpha2.JobSet, number int32) string {
	for i := range js.Status.Attempts {
		a := &js.Status.Attempts[i]
		if a.Number != number {
			continue
		}
		text := "ended" + endedBy(a)
		if a.FirstCause != nil {
			text += ": " + cause(a.FirstCause)
		}
		return text
	}
	return "ended"
}

// cause describes a first cause in one line.
func cause(c *jobsetv1alpha2.FailureCause) string {
	text := "Job " + c.Job
	if c.Pod != "" {
		text = "pod " + c.Pod
	}
	if c.Node != "" {
		text += " on node " + c.Node
	}
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	switch {
	case ptr.Deref(c.Signal, 0) != 0:
		text += fmt.Sprintf(", container %s ended by signal %d", c.Container, *c.Signal)
	case c.ExitCode != nil:
		text += fmt.Sprintf(", container %s exit code %d", c.Container, *c.ExitCode)
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n"); line != "" {
		text += " (" + line + ")"
	}
	return text
}

func byWhom(a *jobsetv1alpha2.Attempt) string {
	if a == nil || a.User == "" {
		return ""
	}
	return " by " + a.User
}

func endedBy(a *jobsetv1alpha2.Attempt) string {
	if a == nil || a.EndUser == "" {
		return ""
	}
	return " by " + a.EndUser
}

func (v view) count() counts {
	n := counts{blind: v.blind}
	for i := range v.JobSet.Spec.ReplicatedJobs {
		n.total += int(helper.Replicas(&v.JobSet.Spec.ReplicatedJobs[i]))
	}
	if v.blind {
		for _, status := range v.JobSet.Status.ReplicatedJobsStatus {
			n.ready += int(status.Ready + status.Succeeded)
			n.running += int(status.Active)
			n.unfinished += int(status.Active)
		}
	}
	for _, job := range v.Jobs {
		state := v.JobState(job)
		switch state {
		case snapshot.JobTerminating, snapshot.JobOutdated:
			n.old++
			continue
		case snapshot.JobComplete, snapshot.JobReady:
			n.ready++
		}
		n.created++
		if state == snapshot.JobComplete || state == snapshot.JobFailed {
			continue
		}
		n.unfinished++
		if job.Status.Active+ptr.Deref(job.Status.Terminating, 0) > 0 {
			n.running++
		}
	}
	return n
}
