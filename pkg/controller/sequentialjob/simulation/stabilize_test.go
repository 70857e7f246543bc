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

// stabilize lets everything come to rest: nothing fails any more, every component gets a turn in every round, and no
// user interferes. Children end as given; with an empty end they run on.
func (e *env) stabilize() plan.End {
	e.Note("from here on nothing fails")
	e.faults = faults{}
	for e.removeForeign() {
	}
	e.EndTrouble()
	if !e.served {
		e.process.worker.Add(name)
	}
	e.denial, e.unreadable, e.rival, e.served = nil, nil, nil, true
	clear(e.refusals)
	if sj := e.sequence(); sj == nil && e.Dice.Percent(50) {
		e.createSequence()
	} else if sj != nil && sj.DeletionTimestamp == nil && helper.Suspended(sj) && e.Dice.Percent(70) {
		e.act("resume")
	}
	heading := simulation.OneOf(e.Dice, plan.End(""), plan.Succeeded, plan.Succeeded, plan.Failed)
	if !e.Stabilize(maxRounds, func() bool { return e.round(heading) }, func() time.Time { return e.process.worker.Due() }) {
		e.Fail(ruleRest, "%d rounds were not enough", maxRounds)
	}
	return heading
}

// round gives everybody a turn. It returns whether anybody used it.
func (e *env) round(heading plan.End) bool {
	busy := false
	for e.DeliverLate() {
		busy = true
	}
	busy = e.ShowAll(e.process.caches()) || busy
	busy = e.sync() || busy
	for _, child := range e.children() {
		busy = e.live(child, heading) || busy
	}
	for _, child := range e.own() {
		busy = e.queue(child, false) || busy
	}
	busy = e.podsAct(true) || busy
	busy = e.readKueue() || busy
	busy = e.admit(false) || busy
	return e.collectGarbage() || busy
}

// checkRest checks that a sequence at rest is as its spec says.
func (e *env) checkRest(heading plan.End) {
	e.process.worker.Add(name)
	if before := e.sequences.Versions.Last + e.jobs.Versions.Last; !e.careless {
		e.sync()
		if e.sequences.Versions.Last+e.jobs.Versions.Last != before {
			e.Fail(ruleWake, "a sync changes something")
		}
	}
	sj := e.sequence()
	switch {
	case sj == nil:
		e.Seen["at rest: gone"]++
		e.checkGone()
		return
	case sj.DeletionTimestamp != nil:
		e.Fail(ruleIs, "it is being deleted, and stays: %q", sj.Finalizers)
	case helper.ManagedElsewhere(sj):
		e.Seen["at rest: managed by another controller"]++
		return
	}
	e.Seen["at rest: "+string(sj.Status.Phase)]++
	active := 0
	for _, child := range e.own() {
		if view(child).End == "" {
			active++
		}
	}
	switch finalizer := contains(sj.Finalizers, batchv1alpha1.SequentialJobFinalizer); {
	case int(sj.Status.State.Active) != active || active > 1:
		e.Fail(ruleIs, "%d children are active, and the status says %d", active, sj.Status.State.Active)
	case finalizer != (active > 0):
		e.Fail(ruleIs, "%d children are active, and the finalizer is there: %t", active, finalizer)
	case sj.Status.ObservedGeneration != sj.Generation:
		e.Fail(ruleIs, "generation %d is observed of %d", sj.Status.ObservedGeneration, sj.Generation)
	}
	if helper.Finished(sj) != nil {
		e.checkFinished(sj, active)
		return
	}
	e.checkUnfinished(sj, heading)
}

// checkGone checks what is left of a sequence. What was orphaned stays, unless it runs. A child may run whose creation came late, while the
// sequence was being deleted without its children, and so may one without a label that no status names: no controller has seen it in time
// to stop it.
func (e *env) checkGone() {
	for _, child := range e.children() {
		owned := len(child.GetOwnerReferences()) > 0
		if owned || view(child).End == "" && !e.rules.unseen(child) {
			e.Fail(ruleIs, "it is gone, and %s is left", child.GetName())
		}
	}
}

func (e *env) checkFinished(sj *batchv1alpha1.SequentialJob, active int) {
	s := &sj.Status
	complete := helper.Finished(sj).Type == batchv1alpha1.ConditionComplete
	switch {
	case active > 0:
		e.Fail(ruleIs, "it has finished, and a child is active")
	case s.CompletionTime == nil || s.ActiveSince != nil:
		e.Fail(ruleIs, "it has finished, at %v, and its clock runs since %v", s.CompletionTime, s.ActiveSince)
	case sj.Spec.TTLSecondsAfterFinished != nil:
		e.Fail(ruleIs, "its time to live is over, and it is there")
	case complete && len(s.Progress.CompletedIndices) != helper.CurrentIndex(s):
		e.Fail(ruleIs, "it is complete: %s", describeStatus(s))
	case meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionProgressing):
		e.Fail(ruleIs, "it has finished, and is Progressing")
	}
	for i := range s.Steps {
		if state := s.Steps[i].State; state != batchv1alpha1.StepSucceeded && state != batchv1alpha1.StepFailed && state != batchv1alpha1.StepPending {
			e.Fail(ruleIs, "it has finished, and step %d is %s", i, state)
		}
	}
}

func (e *env) checkUnfinished(sj *batchv1alpha1.SequentialJob, heading plan.End) {
	s := &sj.Status
	step := helper.CurrentStep(s)
	if helper.Suspended(sj) {
		for _, child := range e.own() {
			if c := view(child); c.End == "" && (!c.Suspended || c.Busy) {
				e.Fail(ruleIs, "it is suspended, and child %s runs", c.Name)
			}
		}
		if !meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionSuspended) || s.ActiveSince != nil {
			e.Fail(ruleIs, "it is suspended, and its conditions do not say so, or its clock runs: %s", describeStatus(s))
		}
		return
	}
	child := e.current(sj)
	if e.holds && e.admitted == "" && sj.Labels[helper.QueueKey] != "" {
		if step == nil || step.State != batchv1alpha1.StepWaiting || s.ActiveSince != nil || child != nil && !child.Suspended {
			e.Fail(ruleIs, "it has no quota: %s", describeStatus(s))
		}
		return
	}
	switch {
	case step == nil || child == nil:
		e.Fail(ruleIs, "nothing runs: %s", describeStatus(s))
	case child.Queued && child.Suspended:
		if e.generous && e.workloads[child.UID].active {
			e.Fail(ruleIs, "child %s was not admitted", child.Name)
		}
		if step.State != batchv1alpha1.StepWaiting || s.ActiveSince != nil || (!e.workloads[child.UID].active && e.workloads[child.UID].deactivated) {
			e.Fail(ruleIs, "child %s waits: %s", child.Name, describeStatus(s))
		}
		return
	case child.Suspended || !child.Busy || child.Deleting || step.State != batchv1alpha1.StepRunning:
		e.Fail(ruleIs, "child %s does not run: %s", child.Name, describeStatus(s))
	case heading != "" || sj.Spec.ActiveDeadlineSeconds != nil:
		e.Fail(ruleIs, "it has not ended: %s", describeStatus(s))
	case !meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionProgressing) || s.ActiveSince == nil:
		e.Fail(ruleIs, "it runs, and is not Progressing, or its clock stands: %s", describeStatus(s))
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
