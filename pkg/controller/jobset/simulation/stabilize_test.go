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
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	// maxRounds is how often everybody may get a turn until all is at rest. One round of waiting for a lag to
	// end takes a second, and there can be few of these.
	maxRounds = 120
	// deniedRounds is how often everybody gets a turn until a policy that denies a Job is lifted.
	deniedRounds = 60
	// refusedLast is in how many histories one has requests that are refused when nothing else happens any more, in so many rounds.
	refusedLast, refusedRounds = 8, 10
	// maxFailures is how many Jobs fail in the end at most, so that a policy of endless restarts comes to an end.
	maxFailures = 6
)

// stabilize lets everything come to rest: nothing fails any more, every component gets a turn in every round, and no
// user interferes. If so wanted, requests are refused until the last rounds, when no event makes up for one that is not made again.
func (e *env) stabilize(refused bool) {
	e.Note("from here on nothing fails")
	e.EndTrouble()
	e.faults, e.deniesStatus = faultProfile{}, false
	e.tidyUp()
	e.renewGroups()
	if e.denied != "" {
		none := 0
		e.rounds(deniedRounds, runOn, &none)
		e.renewGroups() // a request that arrived late may have started a Job in a group that was being deleted
		e.checkOthers()
		e.Note("no policy denies job %s any more", e.denied)
		e.denied = ""
	}
	e.stabilizeSlowly()
	heading := simulation.OneOf(e.Dice, runOn, succeed, succeed, failSoon)
	failures := e.Dice.IntN(maxFailures + 1)
	if refused {
		e.Note("requests are refused for some rounds")
		e.Outcomes[simulation.Refused] = 300
		e.rounds(refusedRounds, heading, &failures)
		e.EndTrouble()
	}
	if !e.rounds(maxRounds, heading, &failures) || e.renewGroups() && !e.rounds(maxRounds, heading, &failures) {
		e.Fail("every history comes to rest", "%d rounds were not enough", maxRounds)
	}
}

// rounds gives everybody so many turns. It returns whether all has come to rest before.
func (e *env) rounds(most int, heading destiny, failures *int) bool {
	return e.Stabilize(most, func() bool {
		busy := false
		for e.DeliverLate() {
			busy = true
		}
		busy = e.ShowAll(e.process.caches()) || busy
		busy = e.sync() || busy
		busy = e.liveAll(heading, failures) || busy
		return e.collectGarbage() || busy
	}, func() time.Time { return e.process.worker.Due() })
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
			if _, found := e.jobs.Get(name); !found && name != e.denied {
				e.Fail("one denied child delays no other", "job %s is missing, though only %s is denied", name, e.denied)
			}
		}
	}
}

// tidyUp ends what users and others have left behind, and lets users want one thing in the end.
func (e *env) tidyUp() {
	for e.removeForeign() {
	}
	e.refusesPods = false
	if e.gangs != nil {
		e.gangs.turn(false)
	}
	e.fillNodes(0)
	for _, job := range e.ownJobs() {
		if f := e.invariants.jobs[job.UID]; f != nil && f.spoiled && e.restorable(job) {
			continue
		} else if f != nil && f.spoiled {
			e.Note("somebody deletes the spoiled job %s", job.Name)
			e.invariants.deletedByOther(job)
			e.deleteJob(job, true)
		}
	}
	release := e.Dice.Percent(50)
	for _, job := range e.ownJobs() {
		if release && e.invariants.isHeld(job) {
			e.Note("somebody lets job %s run", job.Name)
			e.hold(job, false)
		}
	}
	switch js := e.set(); {
	case js == nil:
		if e.Dice.Percent(50) {
			e.createSet()
		}
	case js.DeletionTimestamp == nil && e.Dice.Percent(50):
		if suspend := e.Dice.Percent(30); suspend != isSuspended(js) {
			e.switchSuspend(suspend)
		}
	}
}

// restorable reports whether the only thing wrong with a Job is that it lacks the label of its set. The controller finds such a Job when it
// creates one of the name, which it does not while the group of the Job is being deleted.
func (e *env) restorable(job *batchv1.Job) bool {
	lost := plan.LostLabels(job)
	return !e.gangs.losesGroup(job) && len(lost) == 1 && lost[jobsetv1alpha2.JobSetNameKey] != ""
}

// liveAll takes every Job one step further. It reports whether any changed.
func (e *env) liveAll(heading destiny, failures *int) bool {
	busy := false
	for _, job := range append([]*batchv1.Job(nil), e.jobs.Objects...) {
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
	o := plan.Observed{JobSet: e.set(), Jobs: e.ownJobs(), Now: metav1.NewTime(e.Now()), Gates: e.gates, Restored: hostplan.None[plan.Restored]()}
	// The controller does not look for a Job without its label if it does not need the name of the Job.
	o.Jobs = slices.DeleteFunc(o.Jobs, func(job *batchv1.Job) bool {
		return !hasSetName(job) && (finished(&o.JobSet.Status) || !mayStart(o, job.Labels[jobsetv1alpha2.ReplicatedJobNameKey]))
	})
	_, o.ServiceExists = e.services.Get(helper.ServiceName(o.JobSet))
	if e.gangs != nil {
		o.Grouped = &gang.Observed{API: gang.V1beta1, Objects: ownGroups(o.JobSet.UID, e.gangs.workloads.Objects, e.gangs.podGroups.Objects)}
	}
	o.Claims = sets.New[string]()
	for _, name := range helper.ClaimNames(o.JobSet) {
		if _, found := e.claims.Get(name); found {
			o.Claims.Insert(name)
		}
	}
	return o
}
