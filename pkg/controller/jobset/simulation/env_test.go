// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// mutant is how the controller decides and acts: as it really does, or with a defect that must not go unnoticed.
type mutant struct {
	decide func(plan.Observed) plan.Plan
	// finish is plan.Finish unless given.
	finish func(plan.Observed, plan.Plan, plan.Results) plan.Outcome
	// forgetful controllers do not wait until the caches show what they wrote.
	forgetful bool
	// overwriting ones store a status whatever happened to the set meanwhile.
	overwriting bool
	// indifferent ones delete a Job whatever its UID.
	indifferent bool
	// careless ones do not try again what failed.
	careless bool
	// unkind ones do not restore labels.
	unkind bool
	// timid ones create no Job after one that was refused, and begin with that one again.
	timid bool
}

// faultless is the real controller.
var faultless = mutant{decide: plan.Decide}

// env is everything in one history.
type env struct {
	mutant
	dice    dice
	gates   gates.Gates
	faults  faultProfile
	actions []action
	now     time.Time

	jobSets  store[*jobsetv1alpha2.JobSet]
	jobs     store[*batchv1.Job]
	services store[*corev1.Service]
	claims   store[*corev1.PersistentVolumeClaim]
	// template is what the set is made of when a user creates it, and creations counts how often that was.
	template  *jobsetv1alpha2.JobSet
	creations int
	// restoredAt is the version of the store of sets when it was last restored; 0 if it never was.
	restoredAt int
	// restoredSet is the set that was in it.
	restoredSet types.UID
	// slow is the name of a Job whose pods stop slowly.
	slow string
	// denied is the name of a Job whose creation a policy denies.
	denied string
	// unschedulable is the number of pods for which the scheduler finds no node.
	unschedulable int
	// refusesPods means that a quota refuses pods of the set.
	refusesPods bool
	// late are requests under way whose sender does not wait for them any more.
	late []func()

	process    *process
	invariants *invariants
	seen       tally
	// trace are the steps so far; nil if they are not recorded.
	trace *[]string
}

// violation is the panic that ends a history with a broken rule.
type violation string

// beginning is the time at which every history begins.
var beginning = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// newEnv returns an environment in which a user has just created a set, and a controller starts.
func newEnv(seed uint64, c mutant, trace *[]string) *env {
	d := newDice(seed)
	if c.finish == nil {
		c.finish = plan.Finish
	}
	e := &env{
		mutant: c,
		dice:   d,
		gates: gates.Gates{
			RestartJob: d.percent(50), ElasticJobSet: d.percent(30), JobSetActiveDeadlineSeconds: d.percent(30),
			ExecutionAttemptsTracking: d.percent(40), MutablePodResourcesForSuspendedJobSets: d.percent(30), RestartOnFailureTarget: d.percent(70),
		},
		faults: randomFaultProfile(d),
		now:    beginning,
		trace:  trace,
	}
	if most := oneOf(d, 0, 0, 0, 1, 2); most > 0 {
		e.decide = inParts(most, c.decide)
	}
	main := &versions{last: 1}
	e.jobSets.versions = &versions{last: 1000} // the two servers count apart
	e.jobs.versions, e.services.versions, e.claims.versions = main, main, main
	e.actions = e.faults.actions()
	e.template = randomSet(d)
	e.createSet()
	e.startProcess()
	return e
}

// Now and Since make the environment a clock.
func (e *env) Now() time.Time                  { return e.now }
func (e *env) Since(t time.Time) time.Duration { return e.now.Sub(t) }

// stored is the present time as an API server stores it.
func (e *env) stored() metav1.Time { return metav1.NewTime(e.now.Truncate(time.Second)) }

// set returns the stored set; nil if there is none.
func (e *env) set() *jobsetv1alpha2.JobSet {
	js, found := e.jobSets.get(setName)
	if !found {
		return nil
	}
	return js
}

func (e *env) createSet() {
	e.creations++
	js := *e.template
	js.UID = newUID("set", e.creations)
	js.CreationTimestamp, js.Generation = e.stored(), 1
	e.jobSets.put(&js)
	e.invariants = newInvariants(e, &js)
	e.note("user creates the set %s", js.UID)
}

// changeSpec stores a copy of the set with another spec.
func (e *env) changeSpec(change func(*jobsetv1alpha2.JobSet)) {
	e.changeSet(func(js *jobsetv1alpha2.JobSet) {
		change(js)
		js.Generation++
	})
}

// changeSet stores a changed copy of the set.
func (e *env) changeSet(change func(*jobsetv1alpha2.JobSet)) {
	js := *e.set()
	change(&js)
	e.jobSets.put(&js)
}

// changeJob stores a changed copy of a Job.
func (e *env) changeJob(job *batchv1.Job, change func(*batchv1.Job)) *batchv1.Job {
	next := *job
	change(&next)
	e.jobs.put(&next)
	return &next
}

// ownJobs returns the Jobs of the set that exist.
func (e *env) ownJobs() []*batchv1.Job {
	js := e.set()
	if js == nil {
		return nil
	}
	return ownedBy(js.UID, e.jobs.objects)
}

func ownedBy(uid types.UID, jobs []*batchv1.Job) []*batchv1.Job {
	var own []*batchv1.Job
	for _, job := range jobs {
		if len(job.OwnerReferences) > 0 && job.OwnerReferences[0].UID == uid {
			own = append(own, job)
		}
	}
	return own
}

// fail ends the history.
func (e *env) fail(format string, args ...any) {
	panic(violation(fmt.Sprintf(format, args...)))
}

// note adds a step to the trace.
func (e *env) note(format string, args ...any) {
	if e.trace == nil {
		return
	}
	at := e.now.Sub(beginning).Seconds()
	*e.trace = append(*e.trace, fmt.Sprintf("%8.3fs  ", at)+fmt.Sprintf(format, args...))
}
