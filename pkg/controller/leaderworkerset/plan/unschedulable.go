// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// unschedulable returns why the scheduler finds no node for a pod; empty if it finds one, or has not tried.
func unschedulable(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return ""
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Message
		}
	}
	return ""
}

// waitForNodes returns the pods for which the scheduler finds no node, and its reason for the first of them by name.
func (o *Observed) waitForNodes() hostplan.Unschedulable {
	out, first := hostplan.Unschedulable{Since: o.UnschedulableSince}, ""
	count := func(list []Pod) {
		for i := range list {
			pod := &list[i]
			if pod.Unschedulable == "" || pod.Deleting {
				continue
			}
			if out.Pods++; out.Pods == 1 || pod.Name < first {
				first, out.Reason = pod.Name, pod.Unschedulable
			}
		}
	}
	count(o.Leaders)
	for i := range o.Workers {
		count(o.Workers[i].Pods)
	}
	return out
}

// Unschedulable returns the number of pods for which the scheduler finds no node.
func (o *Observed) Unschedulable() int { return o.waitForNodes().Pods }

// podsUnschedulable is the trouble of pods that wait for a node.
func podsUnschedulable(o *Observed) hostplan.Trouble {
	return o.waitForNodes().Trouble(leaderworkersetv1.ConditionPodsUnschedulable, "", hostplan.LeaderWorkerSetUnschedulableAfter)
}
