// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Unschedulable returns the number of pods for which the scheduler finds no node, and its reason for the first of them by name.
func (o *Observed) Unschedulable() (pods int, reason string) {
	first := ""
	count := func(list []Pod) {
		for i := range list {
			pod := &list[i]
			if pod.Unschedulable == "" || pod.Deleting {
				continue
			}
			if pods++; pods == 1 || pod.Name < first {
				first, reason = pod.Name, pod.Unschedulable
			}
		}
	}
	count(o.Leaders)
	for i := range o.Workers {
		count(o.Workers[i].Pods)
	}
	return pods, reason
}

// setUnschedulable reports pods that have waited for a node for some time, and returns when that is due. The message stays while the
// number of pods does: the words of the scheduler change with each try.
func (b *statusBuilder) setUnschedulable() time.Duration {
	const conditionType = leaderworkersetv1.ConditionPodsUnschedulable
	pods, reason := b.o.Unschedulable()
	c := meta.FindStatusCondition(b.next.Conditions, conditionType)
	known := c != nil && c.Status == metav1.ConditionTrue
	head := hostplan.CountPods(pods) + " cannot be scheduled: "
	switch left := hostplan.LeaderWorkerSetUnschedulableAfter - b.o.Now.Sub(b.o.UnschedulableSince); {
	case pods == 0 && known:
		b.setCondition(conditionType, metav1.ConditionFalse, leaderworkersetv1.ReasonPodsScheduled, "no pod waits for a node")
	case pods == 0, known && strings.HasPrefix(c.Message, head):
	case !known && left > 0:
		return left
	default:
		b.setCondition(conditionType, metav1.ConditionTrue, leaderworkersetv1.ReasonUnschedulable, head+reason)
		if !known {
			b.event(corev1.EventTypeWarning, conditionType, ActionCreate, head+reason)
		}
	}
	return 0
}
