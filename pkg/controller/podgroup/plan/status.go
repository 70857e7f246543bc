// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// Reasons of the condition Ready.
const (
	// ReasonPodsRunning is the reason of a group that is ready.
	ReasonPodsRunning = "PodsRunning"
	// ReasonPodsNotRunning is the reason of one of which too few pods run.
	ReasonPodsNotRunning = "PodsNotRunning"
	// ReasonSettling is the reason of one of unknown size to which pods were added within the stabilization window.
	ReasonSettling = "Settling"
	// ReasonSizeUnknown is the reason of one whose owners could not be read.
	ReasonSizeUnknown = "SizeUnknown"
)

// Reasons of events.
const (
	// EventReady is the reason of the event about a group that becomes ready.
	EventReady = "GroupReady"
	// EventDegraded is the reason of the event about a group that was ready, and of which fewer pods than needed run.
	EventDegraded = "GroupDegraded"
	// EventInvalidSize is the reason of the event about sizes of pods that are malformed or contradict each other.
	EventInvalidSize = "InvalidPodGroupSize"
	// EventLabelFailed is the reason of the event about pods of a ready group that the API refuses to label.
	EventLabelFailed = "PodGroupLabelFailed"
	// EventSizeUnknown is the reason of the event about owners that the API refuses to return.
	EventSizeUnknown = "PodGroupSizeUnknown"
)

// addStatus adds the next status of the PodReadinessGroup and its events, if there is one and it is time to write it.
func (p *Plan) addStatus(o Observed) {
	if o.Group == nil || !o.ShowStatus {
		return
	}
	old := &o.Group.Status
	next := old.DeepCopy()
	next.Pods, next.Running, next.Ready, next.ObservedGeneration = p.Pods, p.Running, p.Labeled, o.Group.Generation
	if p.Ready && next.ReadyTime == nil {
		now := metav1.NewTime(o.Now.Truncate(time.Second))
		next.ReadyTime = &now
	}
	next.Phase = p.phase(next.ReadyTime != nil)
	meta.SetStatusCondition(&next.Conditions, p.condition(o))
	if equality.Semantic.DeepEqual(old, next) {
		return
	}
	if wait := o.Written.Add(statusEvery).Sub(o.Now); wait > 0 && onlyCounts(old, next) {
		p.LookAgain = soonest(p.LookAgain, wait)
		return
	}
	p.Status = next
	switch {
	case next.Phase == old.Phase:
	case next.Phase == batchv1alpha1.GroupReady:
		p.Events = []Event{{Type: corev1.EventTypeNormal, Reason: EventReady, Note: p.progress(o)}}
	case next.Phase == batchv1alpha1.GroupDegraded && p.Pods > 0:
		p.Events = []Event{{Type: corev1.EventTypeWarning, Reason: EventDegraded, Note: p.progress(o)}}
	}
}

// onlyCounts returns whether two statuses say the same but for numbers of pods.
func onlyCounts(old, next *batchv1alpha1.PodReadinessGroupStatus) bool {
	was, is := meta.FindStatusCondition(old.Conditions, batchv1alpha1.ConditionReady), meta.FindStatusCondition(next.Conditions,
		batchv1alpha1.ConditionReady)
	return old.Phase == next.Phase && old.ObservedGeneration == next.ObservedGeneration && old.ReadyTime.Equal(next.ReadyTime) &&
		was != nil && was.Status == is.Status && was.Reason == is.Reason
}

func soonest(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// Phase returns the phase of a group in one word. A group was ready before if a pod carries the label, or its status says so.
func (f Figures) Phase(group *batchv1alpha1.PodReadinessGroup) batchv1alpha1.PodReadinessGroupPhase {
	return f.phase(f.Labeled > 0 || group != nil && group.Status.ReadyTime != nil)
}

func (f Figures) phase(before bool) batchv1alpha1.PodReadinessGroupPhase {
	switch {
	case f.Ready:
		return batchv1alpha1.GroupReady
	case before:
		return batchv1alpha1.GroupDegraded
	}
	return batchv1alpha1.GroupPending
}

// explain says why the group is ready, or is not.
func (p *Plan) explain(o Observed, left time.Duration) {
	p.Reason, p.Message = ReasonPodsNotRunning, p.progress(o)
	switch {
	case p.Ready:
		p.Reason = ReasonPodsRunning
	case o.OwnersError != "":
		p.Reason = ReasonSizeUnknown
		p.Message += ": " + o.OwnersError
	case left > 0 && p.Running >= p.Size && p.Running > 0:
		p.Reason = ReasonSettling
		p.Message += "; nothing states the size of the group, and pods were added in the last " + StabilizationWindow.String()
	}
	if p.SizeProblem.Message != "" {
		p.Message += "; " + p.SizeProblem.Message
	}
	if o.LabelProblem.Message != "" {
		p.Message += "; the " + o.LabelProblem.Message
	}
}

func (p *Plan) condition(o Observed) metav1.Condition {
	c := metav1.Condition{
		Type: batchv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: p.Reason, Message: p.Message,
		ObservedGeneration: o.Group.Generation, LastTransitionTime: metav1.NewTime(o.Now.Truncate(time.Second)),
	}
	if p.Ready {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// progress says how many pods run, of how many.
func (p *Plan) progress(o Observed) string {
	run := "run"
	if readyWhen(o.Group) == batchv1alpha1.ReadyWhenReady {
		run = "are ready"
	}
	if !p.SizeKnown {
		return fmt.Sprintf("%d of %d existing pods %s; the size of the group is not known", p.Running, p.Pods, run)
	}
	return fmt.Sprintf("%d of %d pods %s", p.Running, p.Size, run)
}
