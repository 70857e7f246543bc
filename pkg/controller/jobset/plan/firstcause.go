// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

const (
	// maxMessage is the length of the message of a first cause, in bytes.
	maxMessage = 1024
	// signalBase is what a shell, and a container runtime, adds to the number of the signal that ended a process.
	signalBase, maxSignal = 128, 64
	// reasonOfAnyContainer is that of a container that failed and nobody knows why.
	reasonOfAnyContainer = "Error"
)

// FailedJob is a Job whose pods tell the first cause of the end of an attempt. Unlike all else this is asked for only when
// a plan is carried out, because the pods of Jobs are in no cache.
type FailedJob struct {
	JobRef
	// Attempt is the number of the attempt that ends, or is bound to end, on account of the Job.
	Attempt int32
	// Decided tells that the failure ends the attempt now: there will be no other time to look.
	Decided bool
	// InContainers tells that pods may hold the failure although they have not failed themselves.
	InContainers bool
	// Failure is the condition of the Job that tells of its failure.
	Failure batchv1.JobCondition
}

// wantCause asks for the first cause of the end of the running attempt, unless it has one.
func (b *statusBuilder) wantCause(job *batchv1.Job, decided bool) {
	a := runningAttempt(b.next)
	if a == nil || !b.o.Gates.Attempts || a.FirstCause != nil || job == nil {
		return
	}
	rj := replicatedJobNamed(b.o.JobSet, replicatedJobOf(job))
	b.failedJob = &FailedJob{
		JobRef: refTo(job), Attempt: a.Number, Decided: decided, Failure: *failureOf(job),
		InContainers: rj.Template.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever,
	}
}

// CauseWanted tells whether the failure of a Job would be the first cause of the end of the attempt that the set is in.
func CauseWanted(js *jobsetv1alpha2.JobSet, job *batchv1.Job) bool {
	a := runningAttempt(&js.Status)
	return a != nil && a.FirstCause == nil && job.Labels[jobsetv1alpha2.RestartsKey] == itoa(js.Status.Restarts)
}

// WithFirstCause returns the plan with a status, and an event, that tell the first cause.
func WithFirstCause(o Observed, p Plan, cause *jobsetv1alpha2.FailureCause) Plan {
	if p.FailedJob == nil || cause == nil {
		return p
	}
	st := newStatus(o)
	if p.Status != nil {
		st.next = p.Status.DeepCopy()
	}
	st.events = p.Events
	for i := range st.next.Attempts {
		if a := &st.next.Attempts[i]; a.Number == p.FailedJob.Attempt && a.FirstCause == nil {
			a.FirstCause = cause
			st.events = append([]Event{firstFailure(cause)}, st.events...)
		}
	}
	p.Status, p.Events = st.result()
	return p
}

// FirstCause returns the first failure among the pods of a failed Job, or what the Job itself says if no pod tells.
func FirstCause(job FailedJob, pods []corev1.Pod) *jobsetv1alpha2.FailureCause {
	var first *podFailure
	for i := range pods {
		f := failureOfPod(&pods[i])
		if f != nil && (first == nil || f.before(first)) {
			first = f
		}
	}
	if first == nil {
		return &jobsetv1alpha2.FailureCause{
			Job: job.Name, Reason: job.Failure.Reason, Message: cut(job.Failure.Message), Time: timeOrNil(job.Failure.LastTransitionTime),
		}
	}
	cause := first.cause
	cause.Job, cause.Message = job.Name, cut(cause.Message)
	cause.Time = timeOrNil(cmp.Or(first.at, job.Failure.LastTransitionTime))
	return &cause
}

// podFailure is the first failure in a pod.
type podFailure struct {
	cause jobsetv1alpha2.FailureCause
	at    metav1.Time
}

// before orders failures by time, and those whose time is unknown last.
func (f *podFailure) before(other *podFailure) bool {
	if f.at.IsZero() != other.at.IsZero() {
		return other.at.IsZero()
	}
	if !f.at.Equal(&other.at) {
		return f.at.Before(&other.at)
	}
	return f.cause.Pod < other.cause.Pod
}

// failureOfPod returns what failed first in a pod; nil if nothing did, other than by being stopped.
func failureOfPod(pod *corev1.Pod) *podFailure {
	f := &podFailure{cause: jobsetv1alpha2.FailureCause{Pod: pod.Name, Node: pod.Spec.NodeName}}
	container, ended := firstTermination(pod)
	if ended != nil {
		f.at = ended.FinishedAt
		f.cause.Container, f.cause.ExitCode = container, ptr.To(ended.ExitCode)
		f.cause.Signal = signalOf(ended)
		f.cause.Reason, f.cause.Message = ended.Reason, strings.TrimSpace(ended.Message)
	}
	disrupted := podCondition(pod, corev1.DisruptionTarget)
	switch {
	case disrupted != nil:
		f.cause.Reason = cmp.Or(pod.Status.Reason, disrupted.Reason)
		f.cause.Message = cmp.Or(f.cause.Message, pod.Status.Message, disrupted.Message)
		if f.at.IsZero() || disrupted.LastTransitionTime.Before(&f.at) {
			f.at = disrupted.LastTransitionTime
		}
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		f.cause.Reason, f.cause.Message = pod.Status.Reason, cmp.Or(f.cause.Message, pod.Status.Message)
	case ended == nil:
		return nil
	}
	return f
}

// firstTermination returns the container of a pod that was the first to end with a failure, before the pod was stopped:
// containers fail too when they are told to end.
func firstTermination(pod *corev1.Pod) (name string, first *corev1.ContainerStateTerminated) {
	stopped := stopTime(pod)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, ended := range []*corev1.ContainerStateTerminated{status.LastTerminationState.Terminated, status.State.Terminated} {
			if ended == nil || ended.ExitCode == 0 || (!stopped.IsZero() && !ended.FinishedAt.Time.Before(stopped)) {
				continue
			}
			if first == nil || ended.FinishedAt.Before(&first.FinishedAt) {
				name, first = status.Name, ended
			}
		}
	}
	return name, first
}

// stopTime returns when a pod that is being deleted was told to end; zero for others. How a disrupted pod ended is of
// interest all the same.
func stopTime(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil || podCondition(pod, corev1.DisruptionTarget) != nil {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
}

func signalOf(ended *corev1.ContainerStateTerminated) *int32 {
	switch {
	case ended.Signal != 0:
		return ptr.To(ended.Signal)
	case ended.ExitCode > signalBase && ended.ExitCode <= signalBase+maxSignal:
		return ptr.To(ended.ExitCode - signalBase)
	}
	return nil
}

func podCondition(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func timeOrNil(at metav1.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// cut shortens a message to what a cause holds, at a rune.
func cut(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}

// firstFailure tells which container of which pod failed first.
func firstFailure(cause *jobsetv1alpha2.FailureCause) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reasonFirstFailure, Note: describeCause(cause)}
}

func describeCause(cause *jobsetv1alpha2.FailureCause) string {
	var note strings.Builder
	switch pod := withoutSuffix(cause.Pod); {
	case cause.Pod == "":
		fmt.Fprintf(&note, "job %s failed", cause.Job)
	case pod == cause.Job:
		fmt.Fprintf(&note, "a pod of job %s", cause.Job)
	default:
		fmt.Fprintf(&note, "pod %s", pod)
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
	if cause.Reason != "" && cause.Reason != reasonOfAnyContainer {
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

// withoutSuffix takes the random end off the name of a pod, which says nothing to a reader.
func withoutSuffix(pod string) string {
	const suffix = 5
	if at := strings.LastIndexByte(pod, '-'); at > 0 && len(pod)-at-1 == suffix {
		return pod[:at]
	}
	return pod
}
