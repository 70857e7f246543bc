// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	namespace = "ns"
	name      = "etl"
)

var key = cache.NewObjectName(namespace, name)

// mutant is how the controller decides and acts: as it really does, or with a defect that must not go unnoticed.
type mutant struct {
	decide func(plan.Observed) plan.Plan
	finish func(plan.Observed, plan.Plan, plan.Results) plan.Outcome
	// forgetful controllers do not wait until the caches show what they wrote.
	forgetful bool
	// overwriting ones store a status whatever happened to the sequence meanwhile.
	overwriting bool
	// careless ones do not try again what failed.
	careless bool
	// hurried ones ask too early again for children that were denied.
	hurried bool
	// eager ones try again what failed as soon as anything is due, and unasking ones take children that no cache shows
	// for gone.
	eager, unasking bool
	// credulous ones believe what children that cannot be read seem to be.
	credulous bool
	// hasty ones take pods that terminate for gone.
	hasty bool
	// misreading ones misread the children of another process.
	misreading bool
	// greedy ones take what has a name that they want for a child.
	greedy   bool
	heedless heedless
}

// faultless is the real controller.
var faultless = mutant{decide: plan.Decide, finish: plan.Finish}

// env is everything in one history.
type env struct {
	mutant
	*simulation.World
	faults faults

	sequences simulation.Store[*batchv1alpha1.SequentialJob]
	jobs      simulation.Store[*batchv1.Job]
	jobSets   simulation.Store[*jobsetv1alpha2.JobSet]
	// workloads are the workloads that Kueue made, by the UID of their child, and generous means that it admits them.
	workloads map[types.UID]*workload
	generous  bool
	// pods are the pods that run, and left the Jobs of JobSets that have ended or are gone.
	pods, left []workloadOf
	// denial is why no child can be created; nil if it can be.
	denial error
	// unreadable is why it cannot be read what still runs; nil if it can be.
	unreadable error
	// refusals are what the API answers to other requests, by verb and kind.
	refusals map[string]error
	trouble  trouble
	// skew is how far the clock of the server of Jobs is ahead.
	skew time.Duration
	kueue
	hardships
	// template is what the sequence is made of when a user creates it, and creations is how often that was.
	template  *batchv1alpha1.SequentialJob
	creations int
	// restoredAt is the version of the store of sequences when it was last restored; 0 if it never was.
	restoredAt int

	process *process
	// rival is a second controller that runs at the same time; nil if there is none.
	rival *process
	// unknownAt is the version of the latest write of a sequence that the controller which leads has not learned of by an answer.
	unknownAt int
	rules     *rules
}

// newEnv returns an environment in which a user has just created a sequence, and a controller starts.
func newEnv(seed uint64, m mutant, trace *[]string) *env {
	const stream = 0x73657175656e6365
	d := simulation.NewDice(seed, stream)
	e := &env{
		mutant: m, World: simulation.NewWorld(d, trace), faults: randomFaults(d),
		workloads: map[types.UID]*workload{}, generous: d.Percent(80), refusals: map[string]error{},
		skew:  simulation.OneOf(d, 0, 0, -5*time.Minute, -time.Minute, 2*time.Minute, 5*time.Minute),
		kueue: kueue{holds: d.Percent(50), served: true},
	}
	e.RandomTrouble()
	server := &simulation.Versions{Last: 1000} // the two servers count apart
	e.sequences.Versions, e.jobSets.Versions = server, server
	e.jobs.Versions = &simulation.Versions{Last: 1}
	e.template = randomSequence(d)
	e.createSequence()
	e.startProcess()
	return e
}

// stored is the present time as an API server stores it.
func (e *env) stored() metav1.Time { return metav1.NewTime(e.Now().Truncate(time.Second)) }

// storedBy is the present time as the server of a child stores it.
func (e *env) storedBy(child metav1.Object) metav1.Time {
	if _, ok := child.(*batchv1.Job); ok {
		return metav1.NewTime(e.Now().Add(e.skew).Truncate(time.Second))
	}
	return e.stored()
}

// sequence returns the stored sequence; nil if there is none.
func (e *env) sequence() *batchv1alpha1.SequentialJob {
	sj, found := e.sequences.Get(name)
	if !found {
		return nil
	}
	return sj
}

// children returns all children that are stored, of any sequence.
func (e *env) children() (all []metav1.Object) {
	for _, job := range e.jobs.Objects {
		all = append(all, job)
	}
	for _, js := range e.jobSets.Objects {
		if e.hides(js) {
			js = e.hidden
		}
		all = append(all, js)
	}
	return all
}

// own returns those of the stored sequence.
func (e *env) own() (own []metav1.Object) {
	if sj := e.sequence(); sj != nil {
		for _, child := range e.children() {
			if metav1.IsControlledBy(child, sj) {
				own = append(own, child)
			}
		}
	}
	return own
}

// view returns what decisions use of a child.
func view(child metav1.Object) plan.Child {
	if job, ok := child.(*batchv1.Job); ok {
		return plan.ChildOfJob(job)
	}
	return plan.ChildOfJobSet(child.(*jobsetv1alpha2.JobSet))
}

// changeChild stores a changed copy of a child.
func (e *env) changeChild(child metav1.Object, ofJob func(*batchv1.Job), ofJobSet func(*jobsetv1alpha2.JobSet)) {
	switch o := child.(type) {
	case *batchv1.Job:
		next := o.DeepCopy()
		ofJob(next)
		e.jobs.Put(next)
	case *jobsetv1alpha2.JobSet:
		if e.hides(o) {
			e.hidden = e.hidden.DeepCopy()
			ofJobSet(e.hidden)
			return
		}
		next := o.DeepCopy()
		ofJobSet(next)
		e.jobSets.Put(next)
	}
}

func (e *env) removeChild(child metav1.Object) {
	if _, ok := child.(*batchv1.Job); ok {
		e.jobs.Remove(child.GetName())
	} else {
		if e.jobSets.Remove(child.GetName()); e.hides(child) {
			e.hidden = nil
		}
	}
	delete(e.workloads, child.GetUID())
}

// deleteChild begins the deletion of a child in the foreground.
func (e *env) deleteChild(child metav1.Object) {
	if child.GetDeletionTimestamp() == nil {
		now := e.storedBy(child)
		e.changeChild(child, func(j *batchv1.Job) { j.DeletionTimestamp = &now }, func(s *jobsetv1alpha2.JobSet) { s.DeletionTimestamp = &now })
	}
}
