// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds histories in which the store of sets is restored from a backup, once, at any time. Jobs stay as they are. The rules
// about single decisions do not hold for a set that has gone back in time; the rules in this file do instead, until a user deletes the set.

const (
	nothingStopped  = "nothing that runs is stopped because of a restore"
	notRunAgain     = "a set that may have finished since the backup does not run again until somebody resumes it"
	numbersStay     = "no number of an attempt goes down"
	heldLeftAlone   = "a held set is left alone"
	resumedComesRun = "a held set that is resumed comes to rest like any other"
)

// suspendedNow is how a Job is stopped that is not deleted.
const suspendedNow = "suspended"

// restoredSet is what is true about a set since it was restored.
type restoredSet struct {
	// running are the Jobs that ran then, and top is the highest restart attempt of any Job.
	running map[types.UID]place
	top     int32
	// gone means that the set had started, and that no Job of it was left.
	gone bool
	// acted means that a person did something to the set since, and ended that the set has finished since.
	acted, ended bool
	// edited means that a person has edited the set since, which confirms that it is suspended.
	edited bool
	// written means that a controller has written the status since.
	written bool
}

// restore puts the set back to any version that it ever had.
func (e *env) restore() {
	backup := simulation.OneOf(e.Dice, e.jobSets.States()...)
	e.DropLate()
	e.jobSets.Versions.Last += 1_000_000
	e.restoredAt, e.restoredSet = e.jobSets.Versions.Last, backup.UID
	e.jobSets.Objects = []*jobsetv1alpha2.JobSet{backup}
	e.Note("the store is restored: set %s of version %s", backup.UID, backup.ResourceVersion)
	e.invariants = newInvariants(e, backup)
	e.invariants.restored = e.newRestoredSet(backup)
	if e.Dice.Percent(50) {
		e.startProcess()
		return
	}
	p := e.process
	p.knows, p.wrote = progress{}, progress{}
	for p.jobs.Behind() > 0 { // a restore takes longer than a watch lags
		p.jobs.Advance()
	}
	p.jobSets.List() // a watch from before the restore ends with 410
	p.enqueue()
}

func (e *env) newRestoredSet(js *jobsetv1alpha2.JobSet) *restoredSet {
	r := &restoredSet{running: map[types.UID]place{}}
	left := false
	for _, job := range e.ownJobs() {
		at, ok := placeOf(job)
		if job.DeletionTimestamp != nil || !ok {
			// One of an attempt before the backup shows that the set has not come further.
			left = left || ok && at.restarts < js.Status.Restarts
			continue
		}
		left, r.top = true, max(r.top, at.restarts)
		// What still runs of a set that had failed before the backup ends with it, unless it is of a later attempt.
		ends := finished(&js.Status) && at.restarts <= js.Status.Restarts
		if !ended(job) && !jobIsSuspended(job) && !ends {
			r.running[job.UID] = at
		}
	}
	started := js.Status.Restarts > 0 || len(js.Status.Attempts) > 0 || jobRestartsOf(&js.Status) > 0
	for _, n := range js.Status.ReplicatedJobsStatus {
		started = started || n.Ready+n.Active+n.Suspended+n.Succeeded+n.Failed > 0
	}
	r.gone = started && !left && !isSuspended(js) && !finished(&js.Status) && js.DeletionTimestamp == nil && js.Spec.ManagedBy == nil
	return r
}

// personActed notes that a person has decided something about the set.
func (e *env) personActed() {
	if r := e.invariants.restored; r != nil {
		r.acted = true
	}
}

// created checks a new Job.
func (r *restoredSet) created(e *env, job *batchv1.Job) {
	at, _ := placeOf(job)
	switch {
	case r.gone && !r.acted:
		e.Fail(notRunAgain, "job %s", job.Name)
	case at.restarts < r.top:
		e.Fail(numbersStay, "job %s of attempt %d after %d", job.Name, at.restarts, r.top)
	}
}

// stopped checks a Job that the controller deletes or suspends.
func (r *restoredSet) stopped(e *env, job *batchv1.Job, how string) {
	at, runs := r.running[job.UID]
	js := e.set()
	switch {
	case how == suspendedNow && r.edited:
	case !runs || r.acted || r.ended || at.restarts < r.top:
	case js != nil && (js.Status.Restarts > at.restarts || jobRestarts(&js.Status, at.replicatedJob, at.index) > at.jobRestarts):
	default:
		e.Fail(nothingStopped, "job %s of attempt %d is %s", job.Name, at.restarts, how)
	}
}

// stored checks a status.
func (r *restoredSet) stored(e *env, before, after *jobsetv1alpha2.JobSetStatus) {
	switch {
	case after.Restarts < before.Restarts || jobRestartsOf(after) < jobRestartsOf(before):
		e.Fail(numbersStay, "from %d to %d restarts", before.Restarts, after.Restarts)
	case len(after.Attempts) < len(before.Attempts):
		e.Fail(numbersStay, "%d attempts after %d", len(after.Attempts), len(before.Attempts))
	}
	for i := 1; i < len(after.Attempts); i++ {
		if after.Attempts[i].Number <= after.Attempts[i-1].Number || after.Attempts[i-1].EndTime == nil {
			e.Fail(numbersStay, "attempts %+v", after.Attempts)
		}
	}
	r.written = true
	r.ended = r.ended || finished(after) && !finished(before)
	e.Seen["sets held after a restore"] += int(one(conditionIs(after, jobsetv1alpha2.Held) && !conditionIs(before, jobsetv1alpha2.Held)))
}

// decided checks a decision.
func (r *restoredSet) decided(e *env, o plan.Observed, p plan.Plan) {
	after := &o.JobSet.Status
	if p.Status != nil {
		after = p.Status
	}
	d := decision{Observed: o, plan: p, before: &o.JobSet.Status, after: after}
	if conditionIs(after, jobsetv1alpha2.Held) && !finished(after) && (d.writesChildren() || p.DeleteJobSet) {
		e.Fail(heldLeftAlone, "%s", describePlan(p))
	}
	e.Seen["restarts taken over after a restore"] += int(one(slices.ContainsFunc(p.Events, func(e plan.Event) bool { return e.Reason == "RestartsTakenOver" })))
	if wrong := eventsOfHold(d); wrong != "" {
		e.Fail("events come with a change of the status, one for each condition", "%s", wrong)
	}
}

func eventsOfHold(d decision) string {
	began := conditionIs(d.after, jobsetv1alpha2.Held) && !conditionIs(d.before, jobsetv1alpha2.Held)
	if began && !slices.ContainsFunc(d.plan.Events, func(e plan.Event) bool { return e.Reason == jobsetv1alpha2.ReasonRestoredFromBackup }) {
		return "there is no event about the hold"
	}
	return ""
}

// runRestored lets one history happen in which the store is restored. It returns the rule that was broken, if any.
func runRestored(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(seed, m, trace)
		seen = e.Seen
		e.faults.children, e.faults.switching = 0, false
		for range 10 + e.Dice.IntN(100) {
			e.step()
		}
		e.restore()
		e.faults.users = e.faults.users / 4
		for range e.Dice.IntN(60) {
			e.step()
		}
		e.stabilizeRestored()
	})
	return seen, broken
}

// stabilizeRestored lets all come to rest. A set that is held then is resumed.
func (e *env) stabilizeRestored() {
	e.Note("from here on nothing fails")
	e.EndTrouble()
	e.faults, e.denied, e.deniesStatus, e.unschedulable, e.refusesPods = faultProfile{}, "", false, 0, false
	none, failures := 0, e.Dice.IntN(maxFailures+1)
	if !e.rounds(maxRounds, runOn, &none) {
		e.Fail("every history comes to rest", "%d rounds were not enough", maxRounds)
	}
	if js := e.set(); js != nil && js.DeletionTimestamp == nil && conditionIs(&js.Status, jobsetv1alpha2.Held) {
		e.resumeHeld()
	}
	if !e.rounds(maxRounds, simulation.OneOf(e.Dice, runOn, succeed, failSoon), &failures) {
		e.Fail(resumedComesRun, "%d rounds were not enough", maxRounds)
	}
	e.checkRest()
}

func (e *env) resumeHeld() {
	answer, err := e.carryOut(request{kind: resumeRequests, do: func(js *jobset.JobSet, c actions.Call) (*batch.JobSetActionStatus, error) {
		return actions.Resume(js, &batch.JobSetActionSpec{}, c)
	}})
	if err != nil {
		e.Fail(resumedComesRun, "%v", err)
	}
	e.Note("user resumes the held set: %s", answer.Message)
	e.personActed()
	e.Seen["held sets that were resumed"]++
}
