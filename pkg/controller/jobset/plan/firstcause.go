// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/policy"
)

// FailedJob is a Job whose pods hold the first cause of the end of an attempt.
type FailedJob struct {
	JobRef
	// Decided means that the failure ends the attempt now: there will be no other time to look.
	Decided bool
	// InContainers means that pods may hold the failure although they have not failed themselves.
	InContainers bool
	// Failure is the condition of the Job that reports its failure.
	Failure batchv1.JobCondition
}

// firstCause records the first cause of the end of the running attempt, unless it has one, or asks for it. It is reported first,
// since all else follows from it.
func firstCause(s state, job *batchv1.Job, decided bool) (c changes) {
	a := helper.RunningAttempt(s.next)
	if a == nil || !s.KeepAttempts || a.FirstCause != nil || job == nil {
		return changes{}
	}
	if cause, known := s.Cause.Get(); known {
		c.edits = []edit{ofRunning(func(a *jobsetv1alpha2.Attempt) { a.FirstCause = cause.DeepCopy() })}
		c.first = []Event{firstFailure(cause)}
	}
	if s.Cause.Open() {
		rj := helper.ReplicatedJob(s.JobSet, replicatedJobOf(job))
		c.plan.Asks.FirstCause = &FailedJob{
			JobRef: refTo(job), Decided: decided, Failure: *policy.FailureOf(job),
			InContainers: rj.Template.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever,
		}
	}
	return c
}

// causeOfTarget records why a Job is bound to fail, before its pods are gone.
func causeOfTarget(s state) changes {
	return firstCause(s, policy.FirstFailed(s.owned.failureTarget), false)
}

// CauseWanted reports whether the failure of a Job would be the first cause of the end of the attempt that the set is in.
func CauseWanted(js *jobsetv1alpha2.JobSet, job *batchv1.Job) bool {
	a := helper.RunningAttempt(&js.Status)
	return a != nil && a.FirstCause == nil && job.Labels[jobsetv1alpha2.RestartsKey] == itoa(js.Status.Restarts)
}

// firstFailure names the container that failed first, and its pod.
func firstFailure(cause *jobsetv1alpha2.FailureCause) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reasonFirstFailure, Note: describeCause(cause)}
}

func describeCause(cause *jobsetv1alpha2.FailureCause) string {
	var note strings.Builder
	if cause.Pod == "" {
		fmt.Fprintf(&note, "job %s failed", cause.Job)
	} else {
		fmt.Fprintf(&note, "pod %s", cause.Pod)
	}
	if cause.Node != "" {
		fmt.Fprintf(&note, " on node %s", cause.Node)
	}
	switch {
	case cause.ExitCode != nil:
		fmt.Fprintf(&note, ": container %s exited with %d", cause.Container, *cause.ExitCode)
	case cause.Pod != "":
		note.WriteString(" failed")
	}
	if cause.Reason != "" && cause.Reason != helper.ReasonError {
		fmt.Fprintf(&note, " (%s)", cause.Reason)
	}
	if message := lastLine(cause.Message); message != "" {
		fmt.Fprintf(&note, ": %s", message)
	}
	return note.String()
}

// lastLine returns the end of a message, which of a stack trace or the end of a log is the line that tells most.
func lastLine(message string) string {
	const longest = 200
	message = strings.TrimSpace(message)
	line := []rune(strings.TrimSpace(message[strings.LastIndexByte(message, '\n')+1:]))
	if len(line) > longest {
		return string(line[:longest]) + "..."
	}
	return string(line)
}
