// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// goal is the state of a set that an action leads to.
type goal int

const (
	// goalReady is that all Jobs are ready or have succeeded in the attempt that the action began, or a later one.
	goalReady goal = iota
	// goalSuspended is that no pod is left and the set says so.
	goalSuspended
	// goalStopped is that no Job runs or is being deleted any more.
	goalStopped
)

// progress is how far a set is on the way to the goal.
type progress struct {
	// text tells it in numbers. It changes when the numbers do.
	text string
	// reached tells that the goal is reached; text says in which state the set is then.
	reached bool
	// failure tells why the goal will not be reached.
	failure string
}

// counts are the Jobs of a set by how far they are.
type counts struct {
	// total is the number of Jobs that the set has once all exist.
	total int
	// old are those that go away: of an earlier attempt, or under deletion.
	old int
	// created, ready and running are those of the current attempt. Those that succeeded are ready; running ones have pods,
	// which may be terminating.
	created, ready, running int
}

// look tells how far the set is. The attempt is the one that the action began, and uid the set that it was done on.
func look(g goal, set *snapshot.Set, uid types.UID, attempt int32) progress {
	js, n := set.JobSet, countJobs(set)
	switch {
	case js.UID != uid:
		return progress{failure: "the set was deleted, and another one created under its name"}
	case g == goalStopped:
		return progress{reached: n.old+n.running == 0, text: stopping(n, "no Job runs any more")}
	case g == goalSuspended:
		return suspendProgress(js, n)
	}
	return readyProgress(set, n, attempt)
}

func stopping(n counts, done string) string {
	if n.old+n.running == 0 {
		return done
	}
	return fmt.Sprintf("%s running, %d being deleted", cli.Count(n.running, "Job"), n.old)
}

func suspendProgress(js *jobsetv1alpha2.JobSet, n counts) progress {
	switch {
	case js.Status.TerminalState != "":
		return progress{failure: "the set finished meanwhile: " + finish(js)}
	case !ptr.Deref(js.Spec.Suspend, false):
		return progress{failure: "the set was resumed meanwhile" + byWhom(last(js))}
	case n.running == 0 && meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.JobSetSuspended):
		return progress{reached: true, text: "suspended, no pod is left"}
	}
	return progress{text: fmt.Sprintf("%d of %d Jobs stopped", n.total-n.running, n.total)}
}

func readyProgress(set *snapshot.Set, n counts, attempt int32) progress {
	js, current := set.JobSet, last(set.JobSet)
	switch {
	case js.Status.TerminalState == jobsetv1alpha2.TerminalStateCompleted:
		return progress{reached: true, text: "completed"}
	case js.Status.TerminalState != "":
		return progress{failure: finish(js)}
	case ptr.Deref(js.Spec.Suspend, false):
		return progress{failure: "the set is suspended" + endedBy(current) + "; kubectl jobset resume " + js.Name + " lets it run"}
	case current == nil && n.old == 0 && n.ready == n.total:
		return progress{reached: true, text: fmt.Sprintf("%d of %d Jobs ready", n.ready, n.total)}
	case current != nil && current.Number >= attempt && current.EndTime == nil && current.ReadyTime != nil:
		return progress{reached: true, text: fmt.Sprintf("%d of %d Jobs ready in attempt %d%s", n.total, n.total, current.Number, took(current))}
	}
	var parts []string
	if current != nil && current.Number > attempt {
		parts = append(parts, fmt.Sprintf("attempt %d after attempt %d %s", current.Number, current.Number-1, ending(js, current.Number-1)))
	}
	if n.old > 0 {
		parts = append(parts, cli.Count(n.old, "old Job")+" to be deleted")
	}
	parts = append(parts, fmt.Sprintf("%d of %d created", n.created, n.total), fmt.Sprintf("%d of %d ready", n.ready, n.total))
	return progress{text: strings.Join(parts, ", ")}
}

func took(a *jobsetv1alpha2.Attempt) string {
	if a.RequestTime == nil || a.ReadyTime == nil {
		return ""
	}
	return " after " + a.ReadyTime.Sub(a.RequestTime.Time).Round(time.Second/10).String()
}

// finish tells how the set failed or completed, with the first cause if the set knows it.
func finish(js *jobsetv1alpha2.JobSet) string {
	text := js.Status.TerminalState
	for _, t := range []string{jobsetv1alpha2.JobSetFailed, jobsetv1alpha2.JobSetCompleted} {
		if c := meta.FindStatusCondition(js.Status.Conditions, t); c != nil && c.Status == metav1.ConditionTrue {
			text = fmt.Sprintf("%s (%s): %s", c.Type, c.Reason, c.Message)
		}
	}
	if a := last(js); a != nil && a.FirstCause != nil {
		text += "; first cause: " + cause(a.FirstCause)
	}
	return text
}

// ending tells how an earlier attempt ended.
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

// cause tells a first cause in one line.
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

func last(js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.Attempt {
	if len(js.Status.Attempts) == 0 {
		return nil
	}
	return &js.Status.Attempts[len(js.Status.Attempts)-1]
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

func countJobs(set *snapshot.Set) counts {
	var n counts
	for i := range set.JobSet.Spec.ReplicatedJobs {
		n.total += int(ptr.Deref(set.JobSet.Spec.ReplicatedJobs[i].Replicas, 1))
	}
	for _, job := range set.Jobs {
		switch {
		case job.DeletionTimestamp != nil || previous(set.JobSet, job):
			n.old++
			continue
		case finished(job, batchv1.JobComplete):
			n.ready++
		case finished(job, batchv1.JobFailed):
		default:
			if job.Status.Active+ptr.Deref(job.Status.Terminating, 0) > 0 {
				n.running++
			}
			if isReady(job) {
				n.ready++
			}
		}
		n.created++
	}
	return n
}

// previous tells whether the Job belongs to an earlier attempt of the set, or of this single Job.
func previous(js *jobsetv1alpha2.JobSet, job *batchv1.Job) bool {
	if label(job, jobsetv1alpha2.RestartsKey) < js.Status.Restarts {
		return true
	}
	for i := range js.Status.ReplicatedJobsStatus {
		status := &js.Status.ReplicatedJobsStatus[i]
		index := snapshot.JobIndex(job)
		if status.Name == snapshot.ReplicatedJob(job) && index >= 0 && index < len(status.JobRestarts) {
			return label(job, jobsetv1alpha2.JobRestartAttemptKey) < status.JobRestarts[index]
		}
	}
	return false
}

func label(job *batchv1.Job, key string) int32 {
	n, err := strconv.ParseInt(job.Labels[key], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

func finished(job *batchv1.Job, conditionType batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == conditionType && c.Status == "True" {
			return true
		}
	}
	return false
}

// isReady tells whether all pods that an unfinished Job wants at a time are ready or have succeeded.
func isReady(job *batchv1.Job) bool {
	pods := ptr.Deref(job.Spec.Parallelism, 1)
	if job.Spec.Completions != nil {
		pods = min(pods, *job.Spec.Completions)
	}
	return !ptr.Deref(job.Spec.Suspend, false) && ptr.Deref(job.Status.Ready, 0)+job.Status.Succeeded >= pods
}
