// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

const (
	// maxRounds is how often everybody may get a turn until all is at rest. One round of waiting for a lag to
	// end takes a second, and there can be few of these.
	maxRounds = 120
	// deniedRounds is how often everybody gets a turn until a policy that denies a Job is lifted.
	deniedRounds = 60
	// maxFailures is how many Jobs fail in the end at most, so that a policy of endless restarts comes to an end.
	maxFailures = 6
)

// stabilize lets everything come to rest: nothing fails any more, every component gets a turn in every round, and no
// user interferes.
func (e *env) stabilize() {
	e.note("from here on nothing fails")
	e.faults = faultProfile{}
	e.tidyUp()
	if e.denied != "" {
		none := 0
		e.rounds(deniedRounds, runOn, &none)
		e.checkOthers()
		e.note("no policy denies job %s any more", e.denied)
		e.denied = ""
	}
	e.stabilizeSlowly()
	heading := oneOf(e.dice, runOn, succeed, succeed, failSoon)
	failures := e.dice.IntN(maxFailures + 1)
	if !e.rounds(maxRounds, heading, &failures) {
		e.fail("rule %q: %d rounds were not enough", "every history comes to rest", maxRounds)
	}
}

// rounds gives everybody so many turns. It returns whether all has come to rest before.
func (e *env) rounds(most int, heading destiny, failures *int) bool {
	for round := range most {
		e.now = e.now.Add(10 * time.Millisecond)
		busy := e.deliverAll()
		busy = e.syncAll() || busy
		busy = e.liveAll(heading, failures) || busy
		busy = e.garbageCollected() || busy
		if busy {
			continue
		}
		if e.process.due.IsZero() {
			e.note("at rest after %d rounds", round)
			return true
		}
		e.now = e.process.due
	}
	return false
}

// checkOthers checks that the denial of one Job keeps none of the others from being there.
func (e *env) checkOthers() {
	js := e.set()
	if js == nil || js.DeletionTimestamp != nil || js.Spec.ManagedBy != nil || finished(&js.Status) {
		return
	}
	o := e.truth()
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		for index := 0; mayStart(o, rj.Name) && index < int(*rj.Replicas); index++ {
			name := jobNameOf(rj.Name, index)
			if _, found := e.jobs.get(name); !found && name != e.denied {
				e.fail("rule %q: job %s is missing, though only %s is denied", "one denied child delays no other", name, e.denied)
			}
		}
	}
}

// tidyUp ends what users and others have left behind, and lets users want one thing in the end.
func (e *env) tidyUp() {
	for e.removeForeign() {
	}
	e.refusesPods = false
	e.fillNodes(0)
	for _, job := range e.ownJobs() {
		if f := e.invariants.jobs[job.UID]; f != nil && f.spoiled && e.restorable(job) {
			continue
		} else if f != nil && f.spoiled {
			e.note("somebody deletes the spoiled job %s", job.Name)
			e.invariants.deletedByOther(job)
			e.deleteJob(job, true)
		}
	}
	release := e.dice.percent(50)
	for _, job := range e.ownJobs() {
		if release && e.invariants.isHeld(job) {
			e.note("somebody lets job %s run", job.Name)
			e.hold(job, false)
		}
	}
	switch js := e.set(); {
	case js == nil:
		if e.dice.percent(50) {
			e.createSet()
		}
	case js.DeletionTimestamp == nil && e.dice.percent(50):
		if suspend := e.dice.percent(30); suspend != isSuspended(js) {
			e.switchSuspend(suspend)
		}
	}
}

// restorable reports whether the only thing wrong with a Job is that it lacks the label of its set.
func (e *env) restorable(job *batchv1.Job) bool {
	lost := plan.LostLabels(job)
	return len(lost) == 1 && lost[jobsetv1alpha2.JobSetNameKey] != ""
}

// deliverAll shows the caches everything. It reports whether there was anything.
func (e *env) deliverAll() bool {
	busy := len(e.late) > 0
	for len(e.late) > 0 {
		e.deliverLate()
	}
	for _, c := range []cacheOf{&e.process.jobSets, &e.process.jobs, &e.process.services, &e.process.claims} {
		for c.behind() > 0 {
			busy = true
			c.advance()
		}
	}
	return busy
}

// syncAll lets the controller work. It reports whether it had anything to do.
func (e *env) syncAll() bool {
	before := e.seen[syncs]
	e.sync()
	return e.seen[syncs] > before
}

// liveAll takes every Job one step further. It reports whether any changed.
func (e *env) liveAll(heading destiny, failures *int) bool {
	busy := false
	for _, job := range append([]*batchv1.Job(nil), e.jobs.objects...) {
		to := heading
		if to == failSoon {
			if to = succeed; *failures > 0 && job.Status.Active > 0 && ptr.Deref(job.Status.Ready, 0) == job.Status.Active {
				to = failSoon
				*failures--
			}
		}
		busy = e.live(job, to) || busy
	}
	return busy
}

// truth is a snapshot of what is stored.
func (e *env) truth() plan.Observed {
	o := plan.Observed{JobSet: e.set(), Jobs: e.ownJobs(), Now: metav1.NewTime(e.now), Gates: e.gates}
	// The controller does not look for a Job without its label if it does not need the name of the Job.
	o.Jobs = slices.DeleteFunc(o.Jobs, func(job *batchv1.Job) bool {
		return !hasSetName(job) && (finished(&o.JobSet.Status) || !mayStart(o, job.Labels[jobsetv1alpha2.ReplicatedJobNameKey]))
	})
	_, o.ServiceExists = e.services.get(helper.ServiceName(o.JobSet))
	o.Claims = sets.New[string]()
	for _, name := range helper.ClaimNames(o.JobSet) {
		if _, found := e.claims.get(name); found {
			o.Claims.Insert(name)
		}
	}
	return o
}
