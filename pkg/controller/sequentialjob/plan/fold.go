// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// wants is what one subject wants: changes of the status with their events, and writes of children. Subjects are functions from what was
// observed to wants, and change nothing themselves. The zero value wants nothing.
type wants struct {
	// childUID is the UID of the child of the current step; "" leaves it.
	childUID types.UID
	// state is the next state of the current step; "" leaves it.
	state batchv1alpha1.StepState
	// step is the template that the current step was changed to; nil leaves it.
	step *helper.Step
	// events are reported before those of conditions.
	events []Event
	// conditions are put in place in their order.
	conditions []condition
	// troubles become conditions after these.
	troubles []hostplan.Trouble
	// move is the transition of the step or of the sequence.
	move move

	// delete, suspend, setActive, createJob and createJobSet are writes of children.
	delete       []Deletion
	suspend      []SuspendPatch
	setActive    *WorkloadPatch
	createJob    *batchv1.Job
	createJobSet *jobsetv1alpha2.JobSet
	// deleteSequence means that the time of the sequence is over.
	deleteSequence bool
	// asks are what the decision needs to know.
	asks Asks
	// requeueAfter is when to decide again; 0 for never.
	requeueAfter time.Duration
	// actsAfter is when a time limit ends; 0 for never.
	actsAfter time.Duration
	// clock means that the clock of the deadline follows the next status.
	clock bool
	// over means that nothing else may happen.
	over bool
}

// moveKind is a kind of transition. The functions of attempt.go carry out transitions.
type moveKind int

const (
	_ moveKind = iota
	// takeUp notes that the controller acts on the present spec.
	takeUp
	// begin begins a step, or begins it again.
	begin
	// succeed and fail end the current step as its child has ended.
	succeed
	fail
	// expire ends the sequence because its time is over, and complete because all steps have succeeded.
	expire
	complete
	// conclude completes the status of a sequence that has ended.
	conclude
	// reopen takes back that a sequence had failed, and takeOver makes the step of a child the current one, both after a restore.
	reopen
	takeOver
	// standStill stops the clock of the deadline while a sequence is held.
	standStill
)

// move is a transition of a step, or of the whole sequence.
type move struct {
	kind moveKind
	// index is the step that begins or is taken over.
	index int
	// child is the child that has ended or is taken over.
	child *Child
	// cause is why it failed; nil if that is not known.
	cause *jobsetv1alpha2.FailureCause
}

// status is the next status of a sequence, and the plan, in the making. Only fold changes it.
type status struct {
	q    *sequence
	next *batchv1alpha1.SequentialJobStatus
	// events are caused by transitions, and plan has the writes of children.
	events []Event
	plan   Plan
}

func newStatus(q *sequence) *status { return &status{q: q, next: q.SequentialJob.Status.DeepCopy()} }

// fold makes the next status and the plan from what a subject wants: first the step, then events and conditions, then the transition, then
// the writes. Subjects are folded in the order in which decide.go lists them; what a later one wants of a condition replaces what an
// earlier one wanted.
func (s *status) fold(w *wants) {
	events, due := note(s.next, s.q.Now, w)
	s.events = append(s.events, events...)
	s.events = append(s.events, carryOut(s.q, s.next, w.move)...)
	if w.clock {
		followClock(s.q, s.next)
	}
	p := &s.plan
	p.Delete = append(p.Delete, w.delete...)
	p.Suspend = append(p.Suspend, w.suspend...)
	p.RequeueAfter = hostplan.Sooner(p.RequeueAfter, w.requeueAfter, w.actsAfter, due)
	p.ActsAfter = hostplan.Sooner(p.ActsAfter, w.actsAfter)
	if w.setActive != nil {
		p.SetWorkloadActive = w.setActive
	}
	if w.createJob != nil || w.createJobSet != nil {
		p.CreateJob, p.CreateJobSet = w.createJob, w.createJobSet
	}
	p.DeleteSequentialJob = p.DeleteSequentialJob || w.deleteSequence
	p.Asks.add(w.asks)
}

// result returns the plan with the next status.
func (s *status) result() Plan {
	s.plan.Status, s.plan.Events = changed(s.q.SequentialJob, s.next), s.events
	return s.plan
}

// note puts in place what is wanted of the current step and of conditions. It returns the events about that, and when a trouble must be
// looked at again; 0 for never.
func note(next *batchv1alpha1.SequentialJobStatus, now metav1.Time, w *wants) (events []Event, due time.Duration) {
	if entry := entryOf(next); entry != nil {
		if w.childUID != "" {
			entry.ChildUID = w.childUID
		}
		if w.state != "" {
			entry.State = w.state
		}
		if w.step != nil {
			entry.Name, entry.Kind = w.step.Name, w.step.Kind()
		}
	}
	events = append(slices.Clip(w.events), put(next, now, w.conditions...)...)
	began, due := report(next, now, w.troubles...)
	return append(events, began...), due
}

// report makes conditions of troubles. It returns the events about those that begin, and when to look at them again; 0 for never.
func report(next *batchv1alpha1.SequentialJobStatus, now metav1.Time, troubles ...hostplan.Trouble) (events []Event, due time.Duration) {
	if len(troubles) > 0 {
		next.Conditions, events, due = hostplan.Fold(next.Conditions, next.ObservedGeneration, now, troubles...)
	}
	return events, due
}

// changed returns the next status, nil if the stored one is right. All conditions of it hold for the generation that was taken
// up, and say so. The time of a condition moves with its status only: one trouble may have followed another.
func changed(sj *batchv1alpha1.SequentialJob, next *batchv1alpha1.SequentialJobStatus) *batchv1alpha1.SequentialJobStatus {
	for i := range next.Conditions {
		c := &next.Conditions[i]
		c.ObservedGeneration = next.ObservedGeneration
		if was := meta.FindStatusCondition(sj.Status.Conditions, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
	if equality.Semantic.DeepEqual(&sj.Status, next) {
		return nil
	}
	return next
}
