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

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// conduct is how the controller decides and acts: as it really does, or with a defect that must not go unnoticed.
type conduct struct {
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

// faultless is the conduct of the real controller.
var faultless = conduct{decide: plan.Decide}

// world is everything in one history.
type world struct {
	conduct
	dice    dice
	gates   plan.Gates
	mood    mood
	actions []action
	now     time.Time

	jobSets  store[*jobsetv1alpha2.JobSet]
	jobs     store[*batchv1.Job]
	services store[*corev1.Service]
	claims   store[*corev1.PersistentVolumeClaim]
	// template is what the set is made of when somebody creates it, and creations counts how often that was.
	template  *jobsetv1alpha2.JobSet
	creations int
	// denied is the name of a Job whose creation a policy denies.
	denied string
	// late are requests under way whose sender does not wait for them any more.
	late []func()

	process *process
	referee *referee
	seen    tally
	// trace are the steps so far; nil if nobody reads them.
	trace *[]string
}

// violation is the panic that ends a history with a broken rule.
type violation string

// beginning is the time at which every history begins.
var beginning = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// newWorld returns a world in which a user has just created a set, and a controller starts.
func newWorld(seed uint64, c conduct, trace *[]string) *world {
	d := newDice(seed)
	if c.finish == nil {
		c.finish = plan.Finish
	}
	w := &world{
		conduct: c,
		dice:    d,
		gates: plan.Gates{
			RestartJob: d.percent(50), ElasticJobSet: d.percent(30), ActiveDeadline: d.percent(30),
			ExecutionAttempts: d.percent(40), MutableResources: d.percent(30), RestartOnFailureTarget: d.percent(40),
			Attempts: true,
		},
		mood:  randomMood(d),
		now:   beginning,
		trace: trace,
	}
	if most := oneOf(d, 0, 0, 0, 1, 2); most > 0 {
		w.decide = inParts(most, c.decide)
	}
	main := &versions{last: 1}
	w.jobSets.versions = &versions{last: 1000} // the two servers count apart
	w.jobs.versions, w.services.versions, w.claims.versions = main, main, main
	w.actions = w.mood.actions()
	w.template = randomSet(d)
	w.createSet()
	w.startProcess()
	return w
}

// Now and Since make the world a clock.
func (w *world) Now() time.Time                  { return w.now }
func (w *world) Since(t time.Time) time.Duration { return w.now.Sub(t) }

// stored is the present time as an API server stores it.
func (w *world) stored() metav1.Time { return metav1.NewTime(w.now.Truncate(time.Second)) }

// set returns the stored set; nil if there is none.
func (w *world) set() *jobsetv1alpha2.JobSet {
	js, found := w.jobSets.get(setName)
	if !found {
		return nil
	}
	return js
}

func (w *world) createSet() {
	w.creations++
	js := *w.template
	js.UID = newUID("set", w.creations)
	js.CreationTimestamp, js.Generation = w.stored(), 1
	w.jobSets.put(&js)
	w.referee = newReferee(w, &js)
	w.note("user creates the set %s", js.UID)
}

// changeSpec stores a copy of the set with another spec.
func (w *world) changeSpec(change func(*jobsetv1alpha2.JobSet)) {
	w.changeSet(func(js *jobsetv1alpha2.JobSet) {
		change(js)
		js.Generation++
	})
}

// changeSet stores a changed copy of the set.
func (w *world) changeSet(change func(*jobsetv1alpha2.JobSet)) {
	js := *w.set()
	change(&js)
	w.jobSets.put(&js)
}

// changeJob stores a changed copy of a Job.
func (w *world) changeJob(job *batchv1.Job, change func(*batchv1.Job)) *batchv1.Job {
	next := *job
	change(&next)
	w.jobs.put(&next)
	return &next
}

// ownJobs returns the Jobs of the set that exist.
func (w *world) ownJobs() []*batchv1.Job {
	js := w.set()
	if js == nil {
		return nil
	}
	return ownedBy(js.UID, w.jobs.objects)
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
func (w *world) fail(format string, args ...any) {
	panic(violation(fmt.Sprintf(format, args...)))
}

// note adds a step to the trace.
func (w *world) note(format string, args ...any) {
	if w.trace == nil {
		return
	}
	at := w.now.Sub(beginning).Seconds()
	*w.trace = append(*w.trace, fmt.Sprintf("%8.3fs  ", at)+fmt.Sprintf(format, args...))
}
