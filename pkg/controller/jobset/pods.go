// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// watchedPod is what the cache keeps of a pod of a set. It is small, because a cluster has many pods: a corev1.Pod takes
// 1.5 KiB before it holds anything. What the pods of a Job, a set or a node have in common is kept once.
type watchedPod struct {
	name string
	// set is the name of the JobSet, as a rule a part of the memory of the name.
	set             string
	namespace, node unique.Handle[string]
	job             compactUID
	// version is the resource version.
	version uint64
	// exception is what is wrong with the pod; nil for most pods.
	exception *podException
	// inPlaceAttempt is the attempt that the pod says it has reached; nil if it says nothing.
	inPlaceAttempt *string
	address        netip.Addr
	// containerRestarts is the largest number of restarts of a container.
	containerRestarts int32
	phase             podPhase
	// stops is true for a pod that is being deleted.
	stops bool
}

// podException is what is wrong with a pod.
type podException struct {
	// failure is what failed first in the pod; nil if nothing did.
	failure *helper.PodFailure
	// unschedulable means that the scheduler finds no node for the pod, for the reason given.
	unschedulable bool
	reason        unique.Handle[string]
}

// maxUnschedulable is the length of the scheduler's reason in bytes.
const maxUnschedulable = 400

func exceptionOf(pod *corev1.Pod) *podException {
	e := podException{failure: helper.FailureOfPod(pod)}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && pod.DeletionTimestamp == nil {
			e.unschedulable, e.reason = true, unique.Make(text.TruncateWithEllipsis(c.Message, maxUnschedulable))
		}
	}
	if e.failure == nil && !e.unschedulable {
		return nil
	}
	return &e
}

// failure is what failed first in the pod; nil if nothing did.
func (p *watchedPod) failure() *helper.PodFailure {
	if p.exception == nil {
		return nil
	}
	return p.exception.failure
}

// unschedulable returns whether the scheduler finds no node for the pod.
func (p *watchedPod) unschedulable() bool { return p.exception != nil && p.exception.unschedulable }

// compactUID is a UID in the 16 bytes that it is made of, or in the text that it is if it is no UUID.
type compactUID struct {
	binary uuid.UUID
	text   *string
}

func compact(uid types.UID) compactUID {
	text := string(uid)
	if binary, err := uuid.Parse(text); err == nil && binary.String() == text {
		return compactUID{binary: binary}
	}
	return compactUID{text: &text}
}

func (c compactUID) uid() types.UID {
	switch {
	case c.text != nil:
		return types.UID(*c.text)
	case c.binary == uuid.Nil:
		return ""
	}
	return types.UID(c.binary.String())
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
		name: pod.Name, namespace: unique.Make(pod.Namespace), set: pod.Labels[jobsetv1alpha2.JobSetNameKey],
		node: unique.Make(pod.Spec.NodeName), exception: exceptionOf(pod), phase: phaseOf(pod), stops: pod.DeletionTimestamp != nil,
	}
	if strings.HasPrefix(kept.name, kept.set) {
		kept.set = kept.name[:len(kept.set)]
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		kept.job = compact(owner.UID)
	}
	// What is not well-formed is as good as absent.
	kept.version, _ = strconv.ParseUint(pod.ResourceVersion, 10, 64)
	kept.address, _ = netip.ParseAddr(pod.Status.PodIP)
	if attempt, found := pod.Annotations[jobsetv1alpha2.InPlaceRestartAttemptKey]; found {
		kept.inPlaceAttempt = &attempt
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		kept.containerRestarts = max(kept.containerRestarts, container.RestartCount)
	}
	return kept
}

// GetObjectMeta returns what the cache needs to know of an object.
func (p *watchedPod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: p.name, Namespace: p.namespace.Value(), ResourceVersion: strconv.FormatUint(p.version, 10)}
}

func (p *watchedPod) jobUID() types.UID { return p.job.uid() }

// setName returns the name of the set that is on the pod.
func (p *watchedPod) setName() cache.ObjectName {
	return cache.NewObjectName(p.namespace.Value(), p.set)
}

// planned returns what decisions about restarts in place use of the pod.
func (p *watchedPod) planned() plan.Pod {
	return plan.Pod{
		Name: p.name, Job: p.jobUID(), Failed: p.phase == phaseFailed, ContainerRestarts: p.containerRestarts, InPlaceAttempt: p.inPlaceAttempt,
	}
}

// unschedulableOf indexes those pods for which the scheduler finds no node, by the name of the JobSet that is on them.
func unschedulableOf(obj any) ([]string, error) {
	if pod, ok := obj.(*watchedPod); ok && pod.unschedulable() {
		return []string{pod.setName().String()}, nil
	}
	return nil, nil
}

// setOf indexes a pod by the name of the JobSet that is on it.
func setOf(obj any) ([]string, error) {
	pod, ok := obj.(*watchedPod)
	if !ok {
		return nil, fmt.Errorf("indexing by set: %T is no pod", obj)
	}
	return []string{pod.setName().String()}, nil
}
