// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"cmp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// signalBase is what a shell, and a container runtime, adds to the number of the signal that ended a process.
const signalBase, maxSignal = 128, 64

// reasonRemovedToRestart is what kubelet notes, with an exit code of its own and without a time, of containers that it
// removes because a rule of another one restarts all containers of the pod.
const reasonRemovedToRestart = "RestartingAllContainers"

// PodFailure is the first failure in a pod.
type PodFailure struct {
	// Cause is all of the cause but its Job and its time.
	Cause jobsetv1alpha2.FailureCause
	// At is the time of the failure; zero if it is unknown.
	At metav1.Time
}

// FailureOfPod returns what failed first in a pod; nil if nothing did, other than by being stopped.
func FailureOfPod(pod *corev1.Pod) *PodFailure {
	f := &PodFailure{Cause: jobsetv1alpha2.FailureCause{Pod: pod.Name, Node: pod.Spec.NodeName}}
	container, ended := firstTermination(pod)
	if ended != nil {
		f.At = ended.FinishedAt
		f.Cause.Container, f.Cause.ExitCode = container, ptr.To(ended.ExitCode)
		f.Cause.Signal = signalOf(ended)
		f.Cause.Reason, f.Cause.Message = ended.Reason, strings.TrimSpace(ended.Message)
	}
	disrupted := TruePodCondition(pod, corev1.DisruptionTarget)
	switch {
	case disrupted != nil:
		f.Cause.Reason = cmp.Or(pod.Status.Reason, disrupted.Reason)
		f.Cause.Message = cmp.Or(f.Cause.Message, pod.Status.Message, disrupted.Message)
		if f.At.IsZero() || disrupted.LastTransitionTime.Before(&f.At) {
			f.At = disrupted.LastTransitionTime
		}
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		f.Cause.Reason, f.Cause.Message = pod.Status.Reason, cmp.Or(f.Cause.Message, pod.Status.Message)
	case ended == nil:
		return nil
	}
	f.Cause.Message = text.Truncate(text.Printable(f.Cause.Message), jobsetv1alpha2.MaxCauseBytes)
	return f
}

// Before orders failures by time, and those whose time is unknown last.
func (f *PodFailure) Before(other *PodFailure) bool {
	if f.At.IsZero() != other.At.IsZero() {
		return other.At.IsZero()
	}
	if !f.At.Equal(&other.At) {
		return f.At.Before(&other.At)
	}
	return f.Cause.Pod < other.Cause.Pod
}

// FirstFailure returns the failure that came before all others; nil if there is none.
func FirstFailure(failures ...*PodFailure) (first *PodFailure) {
	for _, f := range failures {
		if f != nil && (first == nil || f.Before(first)) {
			first = f
		}
	}
	return first
}

// FirstCause returns the first failure of a pod of a failed Job; if there is none, what the failure condition of the Job says.
func FirstCause(job string, failure batchv1.JobCondition, first *PodFailure) *jobsetv1alpha2.FailureCause {
	if first == nil {
		return &jobsetv1alpha2.FailureCause{
			Job: job, Reason: failure.Reason, Message: text.Truncate(text.Printable(failure.Message), jobsetv1alpha2.MaxCauseBytes),
			Time: timeOrNil(failure.LastTransitionTime),
		}
	}
	cause := *first.Cause.DeepCopy()
	cause.Job = job
	cause.Time = timeOrNil(cmp.Or(first.At, failure.LastTransitionTime))
	return &cause
}

func timeOrNil(at metav1.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// firstTermination returns the container of a pod that was the first to end with a failure, before the pod was stopped:
// containers fail too when they are stopped. In a pod that restarts all of its containers, kubelet kills the others within the same second.
func firstTermination(pod *corev1.Pod) (name string, first *corev1.ContainerStateTerminated) {
	stopped, e := stopTime(pod), earliest{together: restartsTogether(pod)}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	if e.together {
		statuses = slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) // the agent of the pod is an init container
	}
	for _, status := range statuses {
		// The times are in seconds. A container that ended in the second in which the pod was stopped failed before that if
		// it was started again: containers of a pod that stops are not.
		if last := status.LastTerminationState.Terminated; last != nil && (stopped.IsZero() || !last.FinishedAt.After(stopped)) {
			e.note(status.Name, last)
		}
		if ended := status.State.Terminated; ended != nil && (stopped.IsZero() || ended.FinishedAt.Time.Before(stopped)) {
			e.note(status.Name, ended)
		}
	}
	return e.name, e.first
}

// earliest is the failure of a pod that was the first.
type earliest struct {
	// together is true if a failure of one container of the pod restarts all of them.
	together bool
	name     string
	first    *corev1.ContainerStateTerminated
}

// note takes a termination into account.
func (e *earliest) note(container string, ended *corev1.ContainerStateTerminated) {
	switch {
	case ended.ExitCode == 0 || ended.Reason == reasonRemovedToRestart:
	case e.first == nil || ended.FinishedAt.Before(&e.first.FinishedAt),
		e.together && ended.FinishedAt.Equal(&e.first.FinishedAt) && wasKilled(e.first) && !wasKilled(ended):
		e.name, e.first = container, ended
	}
}

// restartsTogether returns whether a failure of one container of the pod restarts all of them.
func restartsTogether(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(container corev1.Container) bool {
		return slices.ContainsFunc(container.RestartPolicyRules, func(rule corev1.ContainerRestartRule) bool {
			return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	})
}

// wasKilled returns whether a container may have been killed because others failed.
func wasKilled(ended *corev1.ContainerStateTerminated) bool {
	const killed = signalBase + 9
	return ended.ExitCode == killed && ended.Reason != ReasonOOMKilled
}

// Reasons of pods and containers that kubelets, the scheduler and controllers of the cluster give, and for which k8s.io/api has no
// constants.
const (
	// ReasonOOMKilled is the reason of a container that was killed for lack of memory, and ReasonError of one that failed for a reason that
	// is not known.
	ReasonOOMKilled = "OOMKilled"
	ReasonError     = "Error"
	// The next three are reasons of a container that did not start: the runtime could not run its program, could not start it, or failed
	// otherwise.
	ReasonContainerCannotRun = "ContainerCannotRun"
	ReasonStartError         = "StartError"
	ReasonRunContainerError  = "RunContainerError"
	// ReasonUnassigned is the reason of a pod for which the node had no device.
	ReasonUnassigned = "UnexpectedAdmissionError"

	// The others are reasons of pods that were interrupted.
	ReasonEvicted                = "Evicted"
	ReasonEvictionByEvictionAPI  = "EvictionByEvictionAPI"
	ReasonPreempting             = "Preempting"
	ReasonNodeLost               = "NodeLost"
	ReasonDeletionByTaintManager = "DeletionByTaintManager"
	ReasonDeletionByPodGC        = "DeletionByPodGC"
)

// Interruption is what ended a pod, if its containers did not.
type Interruption string

// The interruptions. A pod that is not interrupted has none.
const (
	Evicted   Interruption = "Evicted"   // its node had no room for it any more, or was drained
	Preempted Interruption = "Preempted" // a pod of a higher priority needed the room
	LostNode  Interruption = "LostNode"  // its node is gone, does not answer, or was shut down
)

// interruptions are the interruptions by the reasons of pods and of their condition DisruptionTarget.
var interruptions = map[string]Interruption{
	ReasonEvicted: Evicted, ReasonEvictionByEvictionAPI: Evicted, corev1.PodReasonTerminationByKubelet: Evicted,
	ReasonPreempting: Preempted, "Preempted": Preempted, corev1.PodReasonPreemptionByScheduler: Preempted,
	ReasonNodeLost: LostNode, ReasonDeletionByTaintManager: LostNode, ReasonDeletionByPodGC: LostNode, "NodeShutdown": LostNode,
	"Terminated": LostNode,
}

// InterruptionOf returns what ended a pod, by the reason of its failure; empty if its containers did.
func InterruptionOf(reason string) Interruption { return interruptions[reason] }

// stopTime returns when a pod that is being deleted was stopped; zero for others. How a disrupted pod ended is of interest
// all the same.
func stopTime(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil || TruePodCondition(pod, corev1.DisruptionTarget) != nil {
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

// TruePodCondition returns the condition of a pod if it is True, and nil otherwise.
func TruePodCondition(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// TrueJobCondition returns the condition of a Job if it is True, and nil otherwise.
func TrueJobCondition(job *batchv1.Job, conditionType batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// SuspensionPending returns whether a Job is to be suspended and the Job controller has not done so yet, so that it may be about to create
// pods. From Kubernetes 1.36 on, the controller also removes the start time when it suspends a Job.
func SuspensionPending(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.Suspend, false) && job.Status.StartTime != nil && TrueJobCondition(job, batchv1.JobSuspended) == nil
}
