// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// TouchedKey is the annotation of a StatefulSet of which this controller asked for another look: when, as in RFC 3339.
const TouchedKey = "jobset-apiserver.io/nudged"

// resourceTPU is the resource of TPUs.
const resourceTPU corev1.ResourceName = "google.com/tpu"

// kueueGate is the scheduling gate of pods whose Workload is not admitted.
const kueueGate = kueueplan.Group + "/admission"

// PodOf returns what decisions use of a pod.
func PodOf(pod *corev1.Pod) Pod {
	p := Pod{
		Ref:   Ref{Name: pod.Name, UID: pod.UID},
		Index: numberOf(pod.Labels, leaderworkersetv1.WorkerIndexLabelKey), Group: numberOf(pod.Labels, leaderworkersetv1.GroupIndexLabelKey),
		Revision: pod.Labels[leaderworkersetv1.RevisionKey], OwnRevision: pod.Labels[appsv1.ControllerRevisionHashLabelKey],
		Phase: pod.Status.Phase, Restarted: hasRestarted(pod),
		Deleting: pod.DeletionTimestamp != nil, Node: pod.Spec.NodeName, Created: pod.CreationTimestamp, RequestsTPUs: requestsTPUs(&pod.Spec),
		LeaderName: pod.Annotations[leaderworkersetv1.LeaderPodNameAnnotationKey], HeldByKueue: heldByKueue(pod),
		Unschedulable: unschedulable(pod),
	}
	if p.Deleting {
		p.DeletingSince = deletingSince(pod)
	}
	p.Size = max(0, numberOf(pod.Annotations, leaderworkersetv1.SizeAnnotationKey))
	p.Ready, p.NotReadySince = readiness(pod)
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		p.Controller = owner.UID
	}
	return p
}

// deletingSince returns when the deletion of a pod was requested. The API stores when its grace period ends.
func deletingSince(pod *corev1.Pod) metav1.Time {
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	return metav1.NewTime(pod.DeletionTimestamp.Add(-grace))
}

// WorkersOf returns what decisions use of the StatefulSet of the workers of a group, without its pods.
func WorkersOf(sts *appsv1.StatefulSet) Workers {
	w := Workers{
		Ref: Ref{Name: sts.Name, UID: sts.UID}, ResourceVersion: sts.ResourceVersion, Revision: sts.Labels[leaderworkersetv1.RevisionKey],
		Replicas: 1, Created: sts.Status.Replicas, CreatedAt: sts.CreationTimestamp, Deleting: sts.DeletionTimestamp != nil,
		Observed: sts.Status.ObservedGeneration > 0,
	}
	if sts.Spec.Replicas != nil {
		w.Replicas = *sts.Spec.Replicas
	}
	w.Ready = sts.Status.AvailableReplicas == w.Replicas && sts.Status.CurrentRevision == sts.Status.UpdateRevision
	if at, err := time.Parse(time.RFC3339, sts.Annotations[TouchedKey]); err == nil {
		w.Touched = at
	}
	if owner := metav1.GetControllerOfNoCopy(sts); owner != nil {
		w.Leader = owner.UID
	}
	return w
}

// numberOf returns the number in a label or an annotation; -1 if there is none.
func numberOf(labels map[string]string, key string) int32 {
	n, err := strconv.ParseUint(labels[key], 10, 31)
	if err != nil {
		return -1
	}
	return int32(n) //nolint:gosec // of 31 bits
}

// readiness returns whether a pod is ready, and since when it is not. A pod that waits for a node has no condition yet.
func readiness(pod *corev1.Pod) (ready bool, notSince metav1.Time) {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		switch {
		case c.Type != corev1.PodReady:
		case c.Status == corev1.ConditionTrue:
			return true, metav1.Time{}
		default:
			return false, c.LastTransitionTime
		}
	}
	return false, pod.CreationTimestamp
}

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

func hasRestarted(pod *corev1.Pod) bool {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].RestartCount > 0 {
				return true
			}
		}
	}
	return false
}

// heldByKueue returns whether a pod waits until Kueue has quota for it.
func heldByKueue(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == kueueGate })
}

// requestsTPUs returns whether a container or an init container has TPUs in its limits, or else in its requests.
func requestsTPUs(spec *corev1.PodSpec) bool {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			quantity, limited := r.Limits[resourceTPU]
			if !limited {
				quantity = r.Requests[resourceTPU]
			}
			if !quantity.IsZero() {
				return true
			}
		}
	}
	return false
}
