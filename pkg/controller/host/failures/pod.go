// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package failures

import (
	"strconv"
	"time"
	"unique"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// Pod is what caches keep of a pod of a Job. It is small, because a cluster has many pods: a corev1.Pod takes 1.5 KiB before it
// holds anything.
type Pod struct {
	Name      string
	Namespace unique.Handle[string]
	job       compactUID
	// version is the resource version.
	version uint64
	// exception is what is wrong with the pod; nil for most pods.
	exception *exception
}

var _ metav1.ObjectMetaAccessor = &Pod{}

// NewPod returns what is kept of a pod.
func NewPod(pod *corev1.Pod) Pod {
	kept := Pod{Name: pod.Name, Namespace: unique.Make(pod.Namespace), exception: exceptionOf(pod)}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		kept.job = compact(owner.UID)
	}
	kept.version, _ = strconv.ParseUint(pod.ResourceVersion, 10, 64) // what is not well-formed is as good as absent
	return kept
}

// GetObjectMeta returns what the cache needs to know of an object.
func (p *Pod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace.Value(), ResourceVersion: strconv.FormatUint(p.version, 10)}
}

// JobUID returns the UID of the Job that controls the pod.
func (p *Pod) JobUID() types.UID { return p.job.uid() }

// Reason returns why the scheduler finds no node for the pod; empty if it does.
func (p *Pod) Reason() string {
	if !p.Unschedulable() {
		return ""
	}
	return p.exception.reason.Value()
}

// stops returns whether a pod that has a failure is being deleted.
func (p *Pod) stops() bool { return p.exception != nil && p.exception.stops }

// exception is what is wrong with a pod.
type exception struct {
	// failure is what failed first in the pod; nil if nothing did.
	failure *helper.PodFailure
	// unschedulable means that the scheduler finds no node for the pod, for the reason given.
	unschedulable bool
	reason        unique.Handle[string]
	// since is since when the scheduler has found no node, and nominated whether preemption is making room on one.
	since     time.Time
	nominated bool
	// stops is true for a pod that is being deleted.
	stops bool
}

// MaxReason is the length of the scheduler's reason in bytes.
const MaxReason = 400

func exceptionOf(pod *corev1.Pod) *exception {
	e := exception{stops: pod.DeletionTimestamp != nil, failure: helper.FailureOfPod(pod)}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable &&
			pod.DeletionTimestamp == nil {
			e.unschedulable, e.reason = true, unique.Make(text.TruncateWithEllipsis(text.Printable(c.Message), MaxReason))
			e.since, e.nominated = c.LastTransitionTime.Time, pod.Status.NominatedNodeName != ""
		}
	}
	if e.failure == nil && !e.unschedulable {
		return nil
	}
	return &e
}

// Failure returns what failed first in the pod; nil if nothing did.
func (p *Pod) Failure() *helper.PodFailure {
	if p.exception == nil {
		return nil
	}
	return p.exception.failure
}

// UnschedulableSince returns since when the scheduler has found no node for the pod; zero if it finds one.
func (p *Pod) UnschedulableSince() (since time.Time) {
	if p.Unschedulable() {
		since = p.exception.since
	}
	return since
}

// Nominated returns whether the scheduler finds no node for the pod, but preemption is making room on one.
func (p *Pod) Nominated() bool { return p.Unschedulable() && p.exception.nominated }

// Unschedulable returns whether the scheduler finds no node for the pod.
func (p *Pod) Unschedulable() bool { return p.exception != nil && p.exception.unschedulable }

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
