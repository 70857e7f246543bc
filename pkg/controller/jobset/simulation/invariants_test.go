// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// attempt is one attempt of one Job.
type attempt struct {
	name                  string
	restarts, jobRestarts int32
}

// facts is what is true about a Job, whatever its labels and the caches say.
type facts struct {
	attempt
	// deletedByOther means that a client other than the controller deleted it, and spoiled that its labels were changed.
	deletedByOther, spoiled bool
	// held means that a client other than the controller suspended it while it ran.
	held bool
	// heldAt is the generation of the set then, if the controller had let the Job run for it.
	heldAt int64
	// stoppedIn is the attempt in which the set was when the controller last suspended the Job; 0 if it was in none.
	stoppedIn int32
	// unseen Jobs came into being without the knowledge of the controller, which may not see them yet.
	unseen bool
}

// invariants know what is true about one set, and check every decision about it and every write.
type invariants struct {
	*env
	uid types.UID
	// jobs are all that were ever created, created the last one of each attempt, and failures those attempts that failed.
	jobs     map[types.UID]*facts
	created  map[attempt]types.UID
	failures map[attempt]bool
	// known means that the controller knows the last restart, or the end, of the set.
	known bool
	// actedAt is the version of the set in which a user last acted on its status. A controller that has not seen that acts as
	// if it had not been.
	actedAt int
	// meddled means that a user deleted a Job or changed its labels, so that counters may fall.
	meddled bool
	// switched means that controllers have counted the restarts of single Jobs, or not, in turn. The numbers of attempts
	// may come again then.
	switched bool
	// restored is set while the set is one that was restored from a backup. Then only its rules hold.
	restored *restoredSet
}

func newInvariants(e *env, js *jobsetv1alpha2.JobSet) *invariants {
	return &invariants{
		env: e, uid: js.UID, known: true,
		jobs: map[types.UID]*facts{}, created: map[attempt]types.UID{}, failures: map[attempt]bool{},
	}
}

// processStarted notes that a controller knows all that is stored.
func (r *invariants) processStarted() {
	r.known = true
	for _, f := range r.jobs {
		f.unseen = false
	}
}

func (r *invariants) deletedByOther(job *batchv1.Job) {
	r.meddled = true
	if f := r.jobs[job.UID]; f != nil {
		f.deletedByOther = true
	}
}

func (r *invariants) spoiled(job *batchv1.Job) {
	r.meddled = true
	if f := r.jobs[job.UID]; f != nil {
		f.spoiled = true
	}
}

// jobFailed notes that a Job has failed, or is about to.
func (r *invariants) jobFailed(job *batchv1.Job, ended bool) {
	if f := r.jobs[job.UID]; f != nil && (ended || r.gates.RestartOnFailureTarget) {
		r.failures[f.attempt] = true
	}
}

// held notes that a client other than the controller has suspended a Job, or lets it run.
func (r *invariants) held(job *batchv1.Job, hold bool) {
	if f := r.jobs[job.UID]; f != nil {
		f.held = hold && (f.held || !jobIsSuspended(job))
		if f.heldAt = 0; f.held && job.Annotations[jobsetv1alpha2.ReleasedKey] == strconv.FormatInt(r.set().Generation, 10) {
			f.heldAt = r.set().Generation
		}
		r.Seen["Jobs suspended by others"] += int(one(f.held))
	}
}

// isHeld reports whether a Job is suspended because a client other than the controller has suspended it.
func (r *invariants) isHeld(job *batchv1.Job) bool {
	f := r.jobs[job.UID]
	return f != nil && f.held && jobIsSuspended(job)
}

// finished checks what a sync ends with.
func (r *invariants) finished(o plan.Observed, p plan.Plan, results plan.Results, out plan.Outcome) {
	if r.restored != nil || o.JobSet.UID == r.restoredSet {
		return
	}
	if out.DeferStatus > 0 {
		r.Note("  the status waits")
		r.heldBack(o, out.DeferStatus)
		r.Seen["statuses held back"]++
	}
	if p.Groups.Refusal != nil {
		results.Refusals = append(results.Refusals, *p.Groups.Refusal)
	}
	r.refusalSound(o, results, out)
	r.Seen["full plans"] += int(one(p.More && results.Accepted > 0))
	if out.Status == nil {
		return
	}
	p.Status, p.Events = out.Status, out.Events
	d := decision{Observed: o, plan: p, before: &o.JobSet.Status, after: out.Status, ruling: rulingOn(o)}
	for _, check := range []func(decision) string{conditionsSound, eventsSound} {
		if wrong := check(d); wrong != "" {
			r.Fail("a status that is to be stored is sound", "%s", wrong)
		}
	}
	if slices.Contains(results.Creations, plan.NameTaken) && conditionIs(out.Status, jobsetv1alpha2.ChildNameConflict) {
		r.Seen["conflicts of names told"]++
	}
}

// reference returns a copy of some of the snapshots, to be compared after the decision.
func (r *invariants) reference(o plan.Observed) *plan.Observed {
	if r.Dice.IntN(64) > 0 { // comparing takes much longer than deciding
		return nil
	}
	o.JobSet = o.JobSet.DeepCopy()
	jobs := o.Jobs
	o.Jobs = make([]*batchv1.Job, 0, len(jobs))
	for _, job := range jobs {
		o.Jobs = append(o.Jobs, job.DeepCopy())
	}
	return &o
}

// decided checks a decision. The reference is a copy of the snapshot, if there is one.
func (r *invariants) decided(o plan.Observed, p plan.Plan, reference *plan.Observed) {
	if r.restored != nil {
		r.restored.decided(r.env, o, p)
		return
	}
	if o.JobSet.UID == r.restoredSet {
		return // an outdated cache shows a restored set that a user has deleted since
	}
	d := decision{Observed: o, plan: p, before: &o.JobSet.Status, after: &o.JobSet.Status}
	if p.Status != nil {
		d.after = p.Status
	}
	d.ruling = rulingOn(o)
	for _, rule := range rules {
		if wrong := rule.check(d); wrong != "" {
			r.Fail(rule.name, "%s", wrong)
		}
	}
	if reference != nil {
		r.decideAgain(d, *reference)
	}
	r.tallyDecision(d)
}

// decideAgain checks that a decision follows from the snapshot alone, leaves that as it is, and is at rest with its own
// result.
func (r *invariants) decideAgain(d decision, snapshot plan.Observed) {
	if !equality.Semantic.DeepEqual(d.JobSet, snapshot.JobSet) || !equality.Semantic.DeepEqual(d.Jobs, snapshot.Jobs) {
		r.Fail("a decision does not change what it was made on", "it was made on %s", describe(snapshot))
	}
	r.Dice.Shuffle(len(snapshot.Jobs), func(i, j int) { snapshot.Jobs[i], snapshot.Jobs[j] = snapshot.Jobs[j], snapshot.Jobs[i] })
	if again := r.decide(snapshot); !samePlans.DeepEqual(d.plan, again) {
		r.Fail("equal snapshots lead to equal plans", "first %s, then %s", describePlan(d.plan), describePlan(again))
	}
	if d.plan.Status == nil || d.moved() {
		return
	}
	snapshot.JobSet.Status = *d.plan.Status
	// What was not asked for does not become known.
	if snapshot.Restored.Open() {
		snapshot.Restored = hostplan.None[plan.Restored]()
	}
	if snapshot.Cause.Open() {
		snapshot.Cause = hostplan.NotObtained[*jobsetv1alpha2.FailureCause]()
	}
	if again := r.decide(snapshot); again.Status != nil {
		r.Fail("a status that is stored is right", "%s, then %s", describePlan(d.plan), describePlan(again))
	}
}
