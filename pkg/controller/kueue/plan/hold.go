// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// Holding is all that decisions depend on about the Workload which holds quota for a whole sequence. What it points to is shared and
// must not be changed.
type Holding struct {
	// SequentialJob is the sequence; nil if it is gone. If Off is true, it holds no quota any more.
	SequentialJob *batchv1alpha1.SequentialJob
	Off           bool
	// Workload is the Workload of the sequence; nil if there is none.
	Workload *Workload
	// Started means that the current step has a child. It goes on with what it was started with, whatever the spec says now.
	Started bool
	// Busy means that a child has pods, or may have.
	Busy bool
	// Ready means that the pods of the current step are ready, or that it has ended, or that the sequence is between two steps.
	Ready bool
	// Priority is the value of the class that the label of the sequence names; 0 without a label.
	Priority int32
}

// HoldPlan is what to do about the Workload. At most one of Create, Patch, Status, Conditions and Delete is set, except that Release
// goes with any; what else there is to do follows from the next decision.
type HoldPlan struct {
	// Create is the Workload to create.
	Create *Workload
	// Patch are fields of the Workload to change.
	Patch *HoldPatch
	// Release gives the quota back: these are the complete next conditions, and the admission is removed.
	Release []metav1.Condition
	// Apply is a condition to apply.
	Apply *metav1.Condition
	// Unhold removes the finalizer.
	Unhold bool
	// Delete means that the Workload is deleted.
	Delete bool
}

// Empty returns whether there is nothing to do.
func (p HoldPlan) Empty() bool {
	return p.Create == nil && p.Patch == nil && p.Release == nil && p.Apply == nil && !p.Unhold && !p.Delete
}

// GivesBack returns whether a plan gives back the quota that a Workload has. One that is deleted keeps it until its finalizer is removed:
// its child is stopped in between.
func (p HoldPlan) GivesBack(w *Workload) bool {
	return w != nil && w.Is(ConditionQuotaReserved) && !w.Is(ConditionFinished) &&
		(p.Release != nil || p.Unhold || p.Apply != nil && p.Apply.Type == ConditionFinished)
}

// Change names what a plan does. A server may refuse one of these and allow the others.
func (p HoldPlan) Change() string {
	switch {
	case p.Create != nil:
		return "create"
	case p.Patch != nil:
		return "patch"
	case p.Release != nil:
		return "release"
	case p.Apply != nil:
		return "apply " + p.Apply.Type
	case p.Unhold:
		return "remove the finalizer"
	case p.Delete:
		return "delete"
	}
	return ""
}

// HoldPatch are changes of the spec of a Workload; what is nil stays.
type HoldPatch struct {
	PodSets          []PodSet
	QueueName        *string
	Priority         *int32
	PriorityClassRef *PriorityClassRef
	Activation       Activation
}

// reasonsToRequeue are the reasons of evictions after which Kueue queues a Workload again at once.
var reasonsToRequeue = []string{ReasonPreempted, "NodeFailures"}

// DecideHold returns what to do about the Workload that holds quota for a sequence.
func DecideHold(h Holding) HoldPlan {
	w := h.Workload
	switch {
	case h.over():
		return h.end()
	case w == nil && (h.Busy || helper.Suspended(h.SequentialJob)):
		return HoldPlan{} // created when nothing runs, and something may
	case w == nil:
		return HoldPlan{Create: NewWorkload(h.SequentialJob, h.Priority)}
	case w.DeletionTimestamp != nil:
		return HoldPlan{Unhold: !h.Busy && inUse(w)}
	case w.Is(ConditionFinished):
		// A sequence that was retried.
		return HoldPlan{Unhold: inUse(w), Delete: !inUse(w)}
	case !w.Is(ConditionQuotaReserved) && w.Status.Admission == nil:
		return h.queued()
	case w.Is(ConditionEvicted):
		return h.evicted()
	}
	return h.reserved()
}

// WantsPriority returns whether a decision needs the priority: the Workload is to be created, or may still change.
func WantsPriority(h Holding) bool {
	return !h.over() && (h.Workload == nil || !h.Workload.Is(ConditionQuotaReserved))
}

// over returns whether nothing is to be held any more.
func (h Holding) over() bool {
	sj := h.SequentialJob
	return sj == nil || h.Off || sj.DeletionTimestamp != nil || helper.Finished(sj) != nil || sj.Labels[QueueKey] == ""
}

// end gives the quota back when nothing runs: the Workload is marked as finished first, and then let go.
func (h Holding) end() HoldPlan {
	w := h.Workload
	switch {
	case w == nil || h.Busy:
		return HoldPlan{}
	case w.Is(ConditionFinished) || w.DeletionTimestamp != nil:
		return HoldPlan{Unhold: inUse(w)}
	}
	return HoldPlan{Apply: h.ending()}
}

// ending is the condition of a Workload that has finished.
func (h Holding) ending() *metav1.Condition {
	c := &metav1.Condition{Type: ConditionFinished, Status: metav1.ConditionTrue, Reason: "OwnerNotFound",
		Message: "The SequentialJob is gone"}
	if h.SequentialJob == nil || h.SequentialJob.DeletionTimestamp != nil {
		return c
	}
	switch end := helper.Finished(h.SequentialJob); {
	case end == nil:
		c.Reason, c.Message = "Succeeded", "The SequentialJob holds no quota any more"
	case end.Type == batchv1alpha1.ConditionComplete:
		c.Reason, c.Message = "Succeeded", "All steps of the SequentialJob have completed"
	default:
		c.Reason, c.Message = "Failed", end.Message
	}
	return c
}

// queued keeps the Workload in step with the sequence while it has no quota. Only then may it change.
func (h Holding) queued() HoldPlan {
	w := h.Workload
	want := NewWorkload(h.SequentialJob, h.Priority)
	patch := HoldPatch{Activation: ActivationOf(w, helper.Suspended(h.SequentialJob))}
	if !equalShape(w.Spec.PodSets, want.Spec.PodSets) && (!h.Started || !fits(w.Spec.PodSets, want.Spec.PodSets)) {
		patch.PodSets = want.Spec.PodSets
	}
	if w.Spec.QueueName != want.Spec.QueueName {
		patch.QueueName = &want.Spec.QueueName
	}
	if old := w.Spec.Priority; old == nil || *old != *want.Spec.Priority {
		patch.Priority, patch.PriorityClassRef = want.Spec.Priority, want.Spec.PriorityClassRef
	}
	if patch.empty() {
		return HoldPlan{}
	}
	return HoldPlan{Patch: &patch}
}

func (p HoldPatch) empty() bool {
	return p.PodSets == nil && p.QueueName == nil && p.Priority == nil && p.Activation == Keep
}

// evicted gives the quota back once nothing runs.
func (h Holding) evicted() HoldPlan {
	if h.Busy {
		return HoldPlan{}
	}
	w := h.Workload
	why := w.Condition(ConditionEvicted)
	requeued := condition(ConditionRequeued, metav1.ConditionFalse, why.Reason, why.Message)
	if slices.Contains(reasonsToRequeue, why.Reason) {
		requeued.Status = metav1.ConditionTrue
	}
	next := slices.Clone(w.Status.Conditions)
	for _, c := range []metav1.Condition{
		condition(ConditionQuotaReserved, metav1.ConditionFalse, "Pending", why.Message),
		condition(ConditionAdmitted, metav1.ConditionFalse, "NoReservation", "The Workload has no reservation"),
		condition(ConditionPodsReady, metav1.ConditionFalse, "WaitForStart", "Not all pods are ready"),
		requeued,
	} {
		next = slices.DeleteFunc(next, func(old metav1.Condition) bool { return old.Type == c.Type })
		next = append(next, c)
	}
	return HoldPlan{Release: next}
}

func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// reserved follows a Workload that has quota.
func (h Holding) reserved() HoldPlan {
	w := h.Workload
	if a := ActivationOf(w, helper.Suspended(h.SequentialJob)); a != Keep {
		return HoldPlan{Patch: &HoldPatch{Activation: a}}
	}
	if !fits(w.Spec.PodSets, h.unstarted()) {
		// Pod sets of a Workload with quota cannot change: it is replaced, and its child is stopped before that.
		return HoldPlan{Delete: true}
	}
	if !w.Is(ConditionAdmitted) {
		return HoldPlan{}
	}
	next := h.podsReady()
	if c := w.Condition(ConditionPodsReady); c != nil && c.Status == next.Status {
		return HoldPlan{}
	}
	return HoldPlan{Apply: next}
}

// unstarted returns what steps need that have no child yet.
func (h Holding) unstarted() []PodSet {
	first := firstStep(h.SequentialJob)
	if h.Started {
		first++
	}
	return shapeFrom(h.SequentialJob, first)
}

// podsReady is the next condition of that type.
func (h Holding) podsReady() *metav1.Condition {
	known := h.Workload.Condition(ConditionPodsReady)
	// A Workload was ready before if its last condition says so, or says that it waits to be ready again.
	before := known != nil && (known.Status == metav1.ConditionTrue || known.Reason == "WaitForRecovery")
	c := condition(ConditionPodsReady, metav1.ConditionFalse, "WaitForStart", "Not all pods of the current step are ready")
	switch {
	case h.Ready && before:
		c.Reason = "Recovered"
	case h.Ready:
		c.Reason = "Started"
	case before:
		c.Reason = "WaitForRecovery"
	}
	if h.Ready {
		c.Status, c.Message = metav1.ConditionTrue, "All pods of the current step are ready"
	}
	return &c
}

// Holds returns whether the Workload has quota that a child may run with.
func Holds(w *Workload) bool {
	return w != nil && w.DeletionTimestamp == nil && w.Active() && w.Is(ConditionAdmitted) && !w.Is(ConditionEvicted) &&
		!w.Is(ConditionFinished)
}

func inUse(w *Workload) bool { return slices.Contains(w.Finalizers, InUseFinalizer) }
