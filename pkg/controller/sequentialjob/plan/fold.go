// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	// ready means that the current step lacks nothing but its child.
	ready bool
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

// fold makes the next status and the plan from what a subject wants: first the step, then events and conditions, then the transition, then
// the writes. Subjects are folded in the order in which decide.go calls them; what a later one wants of a condition replaces what an
// earlier one wanted.
func (s *status) fold(w wants) {
	s.foldStep(w)
	s.events = append(s.events, w.events...)
	s.putAll(w.conditions)
	s.carryOut(w.move)
	p := &s.plan
	p.Delete = append(p.Delete, w.delete...)
	p.Suspend = append(p.Suspend, w.suspend...)
	p.RequeueAfter = hostplan.Sooner(p.RequeueAfter, w.requeueAfter, w.actsAfter)
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

// foldStep changes what the status says about the current step.
func (s *status) foldStep(w wants) {
	entry := entryOf(s.next)
	if entry == nil {
		return
	}
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

func (s *status) carryOut(m move) {
	switch m.kind {
	case takeUp:
		s.takeUp()
	case begin:
		s.begin(m.index)
	case succeed:
		s.succeed(*m.child)
	case fail:
		s.fail(*m.child, m.cause)
	case expire:
		s.expire()
	case complete:
		s.complete()
	case conclude:
		s.conclude(m.child)
	case reopen:
		s.reopen()
	case takeOver:
		s.takeOver(member{Child: *m.child, index: m.index})
	case standStill:
		s.next.ActiveSince = nil
	}
}

// result returns the next status, nil if the stored one is right. All conditions of it hold for the generation that was taken
// up, and say so.
func (s *status) result() (*batchv1alpha1.SequentialJobStatus, []Event) {
	for i := range s.next.Conditions {
		s.next.Conditions[i].ObservedGeneration = s.next.ObservedGeneration
	}
	if equality.Semantic.DeepEqual(&s.o.SequentialJob.Status, s.next) {
		return nil, s.events
	}
	return s.next, s.events
}
