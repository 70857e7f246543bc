// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
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
	// hurried ones ask too early again for children that were denied.
	hurried bool
	// unkind ones do not restore labels.
	unkind bool
	// misreading ones misread the Jobs of another process.
	misreading bool
	// timid ones create no Job after one that was refused, and begin with that one again.
	timid bool
	// grouped means that the pods of sets are scheduled in groups.
	grouped bool
}

// faultless is the real controller.
var faultless = mutant{decide: plan.Decide}

// env is everything in one history.
type env struct {
	mutant
	*simulation.World
	gates  gates.Gates
	faults faultProfile

	jobSets  simulation.Store[*jobsetv1alpha2.JobSet]
	jobs     *simulation.Resource[*batchv1.Job]
	services *simulation.Resource[*corev1.Service]
	claims   *simulation.Resource[*corev1.PersistentVolumeClaim]
	// gangs are the groups of pods; nil if sets ask for none.
	gangs *groupAPI
	// template is what the set is made of when a user creates it, and creations counts how often that was.
	template  *jobsetv1alpha2.JobSet
	creations int
	// restoredAt is the version of the store of sets when it was last restored; 0 if it never was.
	restoredAt int
	// restoredSet is the set that was in it.
	restoredSet types.UID
	// slow is the name of a Job whose pods stop slowly.
	slow string
	// denied is the name of a Job whose creation a policy denies, and deniesStatus is whether one denies the status of the set.
	denied       string
	deniesStatus bool
	// unschedulable is the number of pods for which the scheduler finds no node.
	unschedulable int
	// refusesPods means that a quota refuses pods of the set.
	refusesPods bool

	process    *process
	invariants *invariants
}

// newEnv returns an environment in which a user has just created a set, and a controller starts.
func newEnv(seed uint64, c mutant, trace *[]string) *env {
	const stream = 0x6a6f62736574
	d := simulation.NewDice(seed, stream)
	if c.finish == nil {
		c.finish = plan.Finish
	}
	e := &env{
		mutant: c,
		World:  simulation.NewWorld(d, trace),
		gates: gates.Gates{
			RestartJob: d.Percent(50), ElasticJobSet: d.Percent(30), JobSetActiveDeadlineSeconds: d.Percent(30),
			ExecutionAttemptsTracking: d.Percent(40), MutablePodResourcesForSuspendedJobSets: d.Percent(30), RestartOnFailureTarget: d.Percent(70),
		},
	}
	e.randomFaults()
	if most := simulation.OneOf(d, 0, 0, 0, 1, 2); most > 0 {
		e.decide = inParts(most, c.decide)
	}
	main := &simulation.Server{Versions: simulation.Versions{Last: 1}}
	e.jobSets.Versions = &simulation.Versions{Last: 1000} // the two servers count apart
	e.jobs = simulation.NewResource[*batchv1.Job](e.World, main, "job")
	e.services = simulation.NewResource[*corev1.Service](e.World, main, "service")
	e.claims = simulation.NewResource[*corev1.PersistentVolumeClaim](e.World, main, "claim")
	e.template = randomSet(d)
	if c.grouped {
		e.gates.JobSetWorkloadAwareSchedulingAPI, e.gangs = true, newGroupAPI(e, main)
		e.template.Spec.Scheduling = randomScheduling(d, e.template)
	}
	e.createSet()
	e.startProcess()
	return e
}

// set returns the stored set; nil if there is none.
func (e *env) set() *jobsetv1alpha2.JobSet {
	js, found := e.jobSets.Get(setName)
	if !found {
		return nil
	}
	return js
}

func (e *env) createSet() {
	if e.creations++; e.creations > 1 {
		e.Seen["sets created again"]++
	}
	js := *e.template
	js.UID = e.NewUID("set")
	js.CreationTimestamp, js.Generation = e.Stored(), 1
	e.jobSets.Put(&js)
	e.invariants = newInvariants(e, &js)
	e.Note("user creates the set %s", js.UID)
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
	e.jobSets.Put(&js)
}

// changeJob stores a changed copy of a Job.
func (e *env) changeJob(job *batchv1.Job, change func(*batchv1.Job)) *batchv1.Job {
	next := *job
	change(&next)
	e.jobs.Put(&next)
	return &next
}

// ownJobs returns the Jobs of the set that exist.
func (e *env) ownJobs() []*batchv1.Job {
	js := e.set()
	if js == nil {
		return nil
	}
	return ownedBy(js.UID, e.jobs.Objects)
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

// number returns the version of an object for comparison.
func number(version string) int {
	n, err := strconv.Atoi(version)
	if err != nil {
		return 0
	}
	return n
}
