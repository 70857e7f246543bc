// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	ruleRest = "every history comes to rest"
	ruleIs   = "a sequence at rest is as its spec says"
	ruleWake = "nobody has to wake a sequence that is not at rest"
)

// maxRounds is how often everybody may get a turn until all is at rest.
const maxRounds = 200

// settle lets all come to rest: nothing fails any more, everybody gets a turn in every round, and nobody meddles. Children end
// as given; with an empty end they run on.
func (e *env) settle() plan.End {
	e.note("from here on nothing fails")
	e.faults = faults{}
	for e.removeForeign() {
	}
	e.denial = nil
	if sj := e.sequence(); sj == nil && e.dice.Percent(50) {
		e.createSequence()
	} else if sj != nil && sj.DeletionTimestamp == nil && helper.Suspended(sj) && e.dice.Percent(70) {
		e.act("resume")
	}
	heading := simulation.OneOf(e.dice, plan.End(""), plan.Succeeded, plan.Succeeded, plan.Failed)
	for range maxRounds {
		e.now = e.now.Add(10 * time.Millisecond)
		if e.round(heading) {
			continue
		}
		if e.process.due.IsZero() {
			return heading
		}
		e.now = e.process.due
	}
	e.fail(ruleRest, "%d rounds were not enough", maxRounds)
	return ""
}

// round gives everybody a turn. It returns whether anybody used it.
func (e *env) round(heading plan.End) bool {
	busy := len(e.late) > 0
	for len(e.late) > 0 {
		e.deliverLate()
	}
	for _, c := range []cacheOf{&e.process.sequences, &e.process.jobs, &e.process.jobSets} {
		for c.Behind() > 0 {
			busy = true
			c.Advance()
		}
	}
	before := e.seen["syncs"]
	e.sync()
	busy = busy || e.seen["syncs"] > before
	for _, child := range e.children() {
		busy = e.live(child, heading) || busy
	}
	for _, child := range e.own() {
		busy = e.queue(child, false) || busy
	}
	return e.collectGarbage() || busy
}

// checkRest checks that a sequence at rest is as its spec says.
func (e *env) checkRest(heading plan.End) {
	e.process.queued = true
	if before := e.sequences.Versions.Last + e.jobs.Versions.Last; !e.careless {
		e.sync()
		if e.sequences.Versions.Last+e.jobs.Versions.Last != before {
			e.fail(ruleWake, "a sync changes something")
		}
	}
	sj := e.sequence()
	switch {
	case sj == nil:
		e.seen["at rest: gone"]++
		if len(e.children()) > 0 {
			e.fail(ruleIs, "it is gone, and %s is left", e.children()[0].GetName())
		}
		return
	case sj.DeletionTimestamp != nil:
		e.fail(ruleIs, "it is being deleted, and stays: %q", sj.Finalizers)
	case helper.ManagedElsewhere(sj):
		e.seen["at rest: managed by another controller"]++
		return
	}
	e.seen["at rest: "+string(sj.Status.Phase)]++
	active := 0
	for _, child := range e.own() {
		if view(child).End == "" {
			active++
		}
	}
	switch finalizer := contains(sj.Finalizers, batchv1alpha1.SequentialJobFinalizer); {
	case int(sj.Status.State.Active) != active || active > 1:
		e.fail(ruleIs, "%d children are active, and the status says %d", active, sj.Status.State.Active)
	case finalizer != (active > 0):
		e.fail(ruleIs, "%d children are active, and the finalizer is there: %t", active, finalizer)
	case sj.Status.ObservedGeneration != sj.Generation:
		e.fail(ruleIs, "generation %d is observed of %d", sj.Status.ObservedGeneration, sj.Generation)
	}
	if helper.Finished(sj) != nil {
		e.checkFinished(sj, active)
		return
	}
	e.checkUnfinished(sj, heading)
}

func (e *env) checkFinished(sj *batchv1alpha1.SequentialJob, active int) {
	s := &sj.Status
	complete := helper.Finished(sj).Type == batchv1alpha1.ConditionComplete
	switch {
	case active > 0:
		e.fail(ruleIs, "it has finished, and a child is active")
	case s.CompletionTime == nil || s.ActiveSince != nil:
		e.fail(ruleIs, "it has finished, at %v, and its clock runs since %v", s.CompletionTime, s.ActiveSince)
	case sj.Spec.TTLSecondsAfterFinished != nil:
		e.fail(ruleIs, "its time to live is over, and it is there")
	case complete && len(s.Progress.CompletedIndices) != helper.CurrentIndex(s):
		e.fail(ruleIs, "it is complete: %s", describeStatus(s))
	case meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionProgressing):
		e.fail(ruleIs, "it has finished, and is Progressing")
	}
	for i := range s.Steps {
		if state := s.Steps[i].State; state != batchv1alpha1.StepSucceeded && state != batchv1alpha1.StepFailed && state != batchv1alpha1.StepPending {
			e.fail(ruleIs, "it has finished, and step %d is %s", i, state)
		}
	}
}

func (e *env) checkUnfinished(sj *batchv1alpha1.SequentialJob, heading plan.End) {
	s := &sj.Status
	step := helper.CurrentStep(s)
	if helper.Suspended(sj) {
		for _, child := range e.own() {
			if c := view(child); c.End == "" && (!c.Suspended || c.Busy) {
				e.fail(ruleIs, "it is suspended, and child %s runs", c.Name)
			}
		}
		if !meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionSuspended) || s.ActiveSince != nil {
			e.fail(ruleIs, "it is suspended, and its conditions do not say so, or its clock runs: %s", describeStatus(s))
		}
		return
	}
	child := e.current(sj)
	switch {
	case step == nil || child == nil:
		e.fail(ruleIs, "nothing runs: %s", describeStatus(s))
	case child.Queued && child.Suspended:
		if e.generous && e.workloads[child.UID].active {
			e.fail(ruleIs, "child %s was not admitted", child.Name)
		}
		if step.State != batchv1alpha1.StepWaiting || s.ActiveSince != nil || (!e.workloads[child.UID].active && e.workloads[child.UID].deactivated) {
			e.fail(ruleIs, "child %s waits: %s", child.Name, describeStatus(s))
		}
		return
	case child.Suspended || !child.Busy || child.Deleting || step.State != batchv1alpha1.StepRunning:
		e.fail(ruleIs, "child %s does not run: %s", child.Name, describeStatus(s))
	case heading != "" || sj.Spec.ActiveDeadlineSeconds != nil:
		e.fail(ruleIs, "it has not ended: %s", describeStatus(s))
	case !meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionProgressing) || s.ActiveSince == nil:
		e.fail(ruleIs, "it runs, and is not Progressing, or its clock stands: %s", describeStatus(s))
	}
}

// current returns the child of the current attempt of the current step; nil if there is none.
func (e *env) current(sj *batchv1alpha1.SequentialJob) *plan.Child {
	for _, child := range e.own() {
		c := view(child)
		if step := helper.CurrentStep(&sj.Status); step != nil && c.Name == step.ChildName && c.Kind == step.Kind && c.Attempt == step.Attempts {
			return &c
		}
	}
	return nil
}
