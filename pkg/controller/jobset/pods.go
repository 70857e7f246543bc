// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"net/netip"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/inplace"
)

// watchedPod is what the cache keeps of a pod of a set. It is small, because a cluster has many pods: a corev1.Pod takes
// 1.5 KiB before it holds anything. What the pods of a Job, a set or a node have in common is kept once.
type watchedPod struct {
	failures.Pod
	// set is the name of the JobSet, as a rule a part of the memory of the name.
	set  string
	node unique.Handle[string]
	// inPlaceAttempt is the attempt that the pod says it has reached.
	inPlaceAttempt inplace.Attempt
	address        netip.Addr
	// containerRestarts is the largest number of restarts of a container.
	containerRestarts int32
	phase             podPhase
	// byScheduler means that the scheduler chooses a topology domain for the Job.
	byScheduler bool
}

// podPhase is a phase in one byte.
type podPhase uint8

const (
	phaseUnknown podPhase = iota
	phasePending
	phaseRunning
	phaseSucceeded
	phaseFailed
)

func phaseOf(pod *corev1.Pod) podPhase {
	switch pod.Status.Phase {
	case corev1.PodPending:
		return phasePending
	case corev1.PodRunning:
		return phaseRunning
	case corev1.PodSucceeded:
		return phaseSucceeded
	case corev1.PodFailed:
		return phaseFailed
	}
	return phaseUnknown
}

var _ metav1.ObjectMetaAccessor = &watchedPod{}

// newWatchedPod returns what is kept of a pod.
func newWatchedPod(pod *corev1.Pod) *watchedPod {
	kept := &watchedPod{
		Pod: failures.NewPod(pod), set: pod.Labels[jobsetv1alpha2.JobSetNameKey],
		node: unique.Make(pod.Spec.NodeName), phase: phaseOf(pod), byScheduler: placedByScheduler(pod),
	}
	if strings.HasPrefix(kept.Name, kept.set) {
		kept.set = kept.Name[:len(kept.set)]
	}
	// What is not well-formed is as good as absent.
	kept.address, _ = netip.ParseAddr(pod.Status.PodIP)
	if attempt, found := pod.Annotations[jobsetv1alpha2.InPlaceRestartAttemptKey]; found {
		kept.inPlaceAttempt = inplace.NewAttempt(attempt)
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		kept.containerRestarts = max(kept.containerRestarts, container.RestartCount)
	}
	return kept
}

// placedByScheduler returns whether a pod has exclusive placement and is not led into a domain.
func placedByScheduler(pod *corev1.Pod) bool {
	topology := pod.Annotations[jobsetv1alpha2.ExclusiveKey]
	return topology != "" && pod.Spec.NodeSelector[topology] == ""
}

// landed returns whether the pod is on a node in a domain that the scheduler chose.
func (p *watchedPod) landed() bool { return p.byScheduler && p.node.Value() != "" }

// setName returns the name of the set that is on the pod.
func (p *watchedPod) setName() cache.ObjectName {
	return cache.NewObjectName(p.Namespace.Value(), p.set)
}

// counts returns what counts of the pod for restarts in place.
func (p *watchedPod) counts() inplace.Pod {
	return inplace.Pod{
		Namespace: p.Namespace, Name: p.Name, Job: p.JobUID, Attempt: p.inPlaceAttempt, Failed: p.phase == phaseFailed,
		Succeeded: p.phase == phaseSucceeded, ContainerRestarts: p.containerRestarts,
	}
}

// unschedulableOf indexes those pods for which the scheduler finds no node, by the name of the JobSet that is on them.
func unschedulableOf(obj any) ([]string, error) {
	if pod, ok := obj.(*watchedPod); ok && pod.Unschedulable() {
		return []string{pod.setName().String()}, nil
	}
	return nil, nil
}

// landedOf indexes those pods that are on a node in a domain which the scheduler chose, by the UID of their Job.
func landedOf(obj any) ([]string, error) {
	if pod, ok := obj.(*watchedPod); ok && pod.landed() {
		return []string{string(pod.JobUID())}, nil
	}
	return nil, nil
}
