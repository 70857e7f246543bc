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
	// maxRounds is how often everybody may get a turn until the world is at rest. One round of waiting for patience to
	// end takes a second, and there can be few of these.
	maxRounds = 120
	// deniedRounds is how often everybody gets a turn until a policy that denies a Job is lifted.
	deniedRounds = 60
	// maxFailures is how many Jobs fail in the end at most, so that a policy of endless restarts comes to an end.
	maxFailures = 6
)

// settle lets the world come to rest: nothing fails any more, everybody gets a turn in every round, and nobody meddles.
func (w *world) settle() {
	w.note("from here on nothing fails")
	w.mood = mood{}
	w.tidyUp()
	if w.denied != "" {
		none := 0
		w.rounds(deniedRounds, runOn, &none)
		w.checkOthers()
		w.note("no policy denies job %s any more", w.denied)
		w.denied = ""
	}
	heading := oneOf(w.dice, runOn, succeed, succeed, failSoon)
	failures := w.dice.IntN(maxFailures + 1)
	if !w.rounds(maxRounds, heading, &failures) {
		w.fail("rule %q: %d rounds were not enough", "every history comes to rest", maxRounds)
	}
}

// rounds gives everybody so many turns. It tells whether the world has come to rest before.
func (w *world) rounds(most int, heading destiny, failures *int) bool {
	for round := range most {
		w.now = w.now.Add(10 * time.Millisecond)
		busy := w.deliverAll()
		busy = w.syncAll() || busy
		busy = w.liveAll(heading, failures) || busy
		busy = w.garbageCollected() || busy
		if busy {
			continue
		}
		if w.process.due.IsZero() {
			w.note("at rest after %d rounds", round)
			return true
		}
		w.now = w.process.due
	}
	return false
}

// checkOthers checks that the denial of one Job keeps none of the others from being there.
func (w *world) checkOthers() {
	js := w.set()
	if js == nil || js.DeletionTimestamp != nil || js.Spec.ManagedBy != nil || finished(&js.Status) {
		return
	}
	o := w.truth()
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		for index := 0; mayStart(o, rj.Name) && index < int(*rj.Replicas); index++ {
			name := jobNameOf(rj.Name, index)
			if _, found := w.jobs.get(name); !found && name != w.denied {
				w.fail("rule %q: job %s is missing, though only %s is denied", "one denied child delays no other", name, w.denied)
			}
		}
	}
}

// tidyUp ends what users and others have left behind, and lets users want one thing in the end.
func (w *world) tidyUp() {
	for w.removeForeign() {
	}
	for _, job := range w.ownJobs() {
		if f := w.referee.jobs[job.UID]; f != nil && f.spoiled && w.restorable(job) {
			continue
		} else if f != nil && f.spoiled {
			w.note("somebody deletes the spoiled job %s", job.Name)
			w.referee.deletedByOther(job)
			w.deleteJob(job, true)
		}
	}
	release := w.dice.percent(50)
	for _, job := range w.ownJobs() {
		if release && w.referee.isHeld(job) {
			w.note("somebody lets job %s run", job.Name)
			w.hold(job, false)
		}
	}
	switch js := w.set(); {
	case js == nil:
		if w.dice.percent(50) {
			w.createSet()
		}
	case js.DeletionTimestamp == nil && w.dice.percent(50):
		if suspend := w.dice.percent(30); suspend != isSuspended(js) {
			w.switchSuspend(suspend)
		}
	}
}

// restorable tells whether the only thing wrong with a Job is that it lacks the label of its set.
func (w *world) restorable(job *batchv1.Job) bool {
	lost := plan.LostLabels(job)
	return len(lost) == 1 && lost[jobsetv1alpha2.JobSetNameKey] != ""
}

// deliverAll shows the caches everything. It tells whether there was anything.
func (w *world) deliverAll() bool {
	busy := len(w.late) > 0
	for len(w.late) > 0 {
		w.deliverLate()
	}
	for _, c := range []cacheOf{&w.process.jobSets, &w.process.jobs, &w.process.services, &w.process.claims} {
		for c.behind() > 0 {
			busy = true
			c.advance()
		}
	}
	return busy
}

// syncAll lets the controller work. It tells whether it had anything to do.
func (w *world) syncAll() bool {
	before := w.seen[syncs]
	w.sync()
	return w.seen[syncs] > before
}

// liveAll takes every Job one step further. It tells whether any changed.
func (w *world) liveAll(heading destiny, failures *int) bool {
	busy := false
	for _, job := range append([]*batchv1.Job(nil), w.jobs.objects...) {
		to := heading
		if to == failSoon {
			if to = succeed; *failures > 0 && job.Status.Active > 0 && ptr.Deref(job.Status.Ready, 0) == job.Status.Active {
				to = failSoon
				*failures--
			}
		}
		busy = w.live(job, to) || busy
	}
	return busy
}

// truth is a snapshot of what is stored.
func (w *world) truth() plan.Observed {
	o := plan.Observed{JobSet: w.set(), Jobs: w.ownJobs(), Now: metav1.NewTime(w.now), Gates: w.gates}
	// Nobody looks for a Job without its label whose name is not needed.
	o.Jobs = slices.DeleteFunc(o.Jobs, func(job *batchv1.Job) bool {
		return !hasSetName(job) && (finished(&o.JobSet.Status) || !mayStart(o, job.Labels[jobsetv1alpha2.ReplicatedJobNameKey]))
	})
	_, o.ServiceExists = w.services.get(helper.ServiceName(o.JobSet))
	o.Claims = sets.New[string]()
	for _, name := range helper.ClaimNames(o.JobSet) {
		if _, found := w.claims.get(name); found {
			o.Claims.Insert(name)
		}
	}
	return o
}
