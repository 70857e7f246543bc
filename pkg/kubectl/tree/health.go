// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// severity is how serious a problem is.
type severity int

const (
	well     severity = iota // ready, complete, or suspended as asked for
	late                     // runs, but is not ready
	starting                 // has been scheduled, or will be
	leaving                  // goes away
	stuck                    // does not get to a node, or is lost with it
	erring                   // does not start, or starts again and again
	failed                   // ended with a failure
)

// severityOf returns how bad the state of a pod is.
func severityOf(pod *corev1.Pod) severity {
	state := snapshot.PodState(pod)
	switch {
	case pod.Status.Phase == corev1.PodFailed:
		return failed
	case pod.Status.Phase == corev1.PodSucceeded:
		return well
	case state == "Unknown", pod.Status.Phase == corev1.PodUnknown:
		return stuck
	case pod.DeletionTimestamp != nil:
		return leaving
	case errs(state):
		return erring
	case snapshot.PodUnschedulable(pod), state == corev1.PodReasonSchedulingGated:
		return stuck
	case pod.Status.Phase == corev1.PodPending:
		return starting
	case snapshot.PodReady(pod):
		return well
	}
	return late
}

// errs reports whether a state means that a container did not start or has ended with an error: every state but the few of the ordinary
// course.
func errs(state string) bool {
	state, initializing := strings.CutPrefix(state, "Init:")
	if initializing && state != "" && state[0] >= '0' && state[0] <= '9' {
		return false
	}
	switch state {
	case string(corev1.PodPending), string(corev1.PodRunning), cli.ReasonCompleted, "NotReady", "Terminating", cli.ReasonContainerCreating,
		cli.ReasonPodInitializing, corev1.PodReasonSchedulingGated:
		return false
	}
	return true
}

// severityOfJob returns how bad the state of a Job is: its own and, while it runs, that of the worst of its pods.
func severityOfJob(j *Job) severity {
	own := map[string]severity{
		snapshot.JobFailed: failed, snapshot.JobTerminating: leaving, snapshot.JobOutdated: leaving,
		Missing: starting, snapshot.JobPending: starting, snapshot.JobStarting: late,
	}[j.State]
	if j.State == snapshot.JobComplete || own == leaving {
		return own
	}
	for i := range j.Pods {
		own = max(own, j.Pods[i].severity)
	}
	return own
}

// podMessage is what the cluster says about a pod that is not well, in one line.
func podMessage(pod *corev1.Pod) string {
	if pod.Status.Message != "" {
		return oneLine(pod.Status.Message)
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if said := containerMessage(&statuses[i]); said != "" {
				return said
			}
		}
	}
	if pod.Spec.NodeName == "" {
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return oneLine(c.Message)
			}
		}
	}
	return ""
}

func containerMessage(status *corev1.ContainerStatus) string {
	waiting, ended := status.State.Waiting, status.State.Terminated
	if waiting != nil && ended == nil {
		ended = status.LastTerminationState.Terminated
	}
	var said []string
	if ended != nil && ended.ExitCode != 0 {
		said = append(said, fmt.Sprintf("%s ended with exit code %d", status.Name, ended.ExitCode))
		if ended.Message != "" {
			said = append(said, ended.Message)
		}
	} else if waiting != nil && waiting.Message != "" {
		said = append(said, waiting.Message)
	}
	return oneLine(strings.Join(said, ": "))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
