// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// process is a run of the controller. What it knows ends with it.
type process struct {
	*env
	sender *simulation.Sender

	sequences simulation.Informer[*batchv1alpha1.SequentialJob]
	jobs      simulation.Informer[*batchv1.Job]
	jobSets   simulation.Informer[*jobsetv1alpha2.JobSet]
	memory    simulation.Memory
	// syncer is the real one.
	syncer *sequentialjob.Syncer

	worker *simulation.Worker
	// rivals means that another controller leads, readsKueue that Workloads are known, and without that this sync has seen no quota.
	rivals, readsKueue, without bool
	// unread means that this sync did not know the Workloads of a Kueue that is there.
	unread bool
	// blind means that this sync saw a child that the server cannot read.
	blind bool
	// decided means that a decision was made.
	decided bool
	// observed is what the present sync acts on.
	observed plan.Observed
	// busy are the children that had pods, as the caches showed it.
	busy sets.Set[types.UID]
}

// startProcess starts a controller. It lists everything first; client-go asks for the latest state then.
func (e *env) startProcess() {
	p := &process{env: e}
	p.sender = e.NewSender(e.interlude)
	p.worker = &simulation.Worker{World: e.World, Sender: p.sender, Careless: e.careless, Eager: e.eager}
	p.worker.Generation = func(string) string { return simulation.Generation(&p.sequences, name) }
	p.sequences = simulation.Informer[*batchv1alpha1.SequentialJob]{From: &e.sequences, Handle: func(*batchv1alpha1.SequentialJob, bool) { p.worker.Add(name) }}
	p.jobs = simulation.Informer[*batchv1.Job]{From: &e.jobs, Selects: isChild[*batchv1.Job], Handle: func(job *batchv1.Job, _ bool) { p.changed(job) },
		Before: func(job *batchv1.Job) { p.changed(job) }}
	p.jobSets = simulation.Informer[*jobsetv1alpha2.JobSet]{From: &e.jobSets, Selects: isChild[*jobsetv1alpha2.JobSet], Handle: func(s *jobsetv1alpha2.JobSet, _ bool) { p.changed(s) },
		Before: func(s *jobsetv1alpha2.JobSet) { p.changed(s) }}
	p.sequences.List()
	p.jobs.List()
	p.jobSets.List()
	p.memory = simulation.NewMemory(e.World, e.forgetful, map[string]consistency.Versioned{"sequentialjobs": &p.sequences, "jobs": &p.jobs, "jobsets": &p.jobSets})
	p.syncer = newSyncer(p)
	p.syncer.Loop.Kind = checked{p.syncer.Loop.Kind, p}
	if len(p.sequences.Objects) > 0 {
		p.worker.Add(name)
	}
	e.process = p
	e.Note("controller starts")
}

func (p *process) caches() []simulation.Cache {
	return []simulation.Cache{&p.sequences, &p.jobs, &p.jobSets}
}

func isChild[T metav1.Object](object T) bool {
	return object.GetLabels()[batchv1alpha1.SequentialJobUIDKey] != ""
}

// changed looks at the sequence of a child, also at the one that has just lost it.
func (p *process) changed(child metav1.Object) {
	if owner := metav1.GetControllerOfNoCopy(child); owner != nil && owner.Name == name {
		p.worker.Add(name)
	}
}

// sync lets a worker of the controller take the sequence from the queue, if it is there. It reports whether it was.
func (e *env) sync() bool {
	if e.process.sender.Dead {
		e.startProcess()
	}
	p := e.process
	return p.worker.Sync(func(string) (queue.Due, error) { return p.syncSequence() })
}

// syncSequence lets the real controller sync the sequence.
func (p *process) syncSequence() (queue.Due, error) {
	p.observed, p.blind = plan.Observed{}, false
	defer func() { p.blind = false }()
	return p.syncer.Sync(simulation.Quiet, key)
}

// checked is the real kind, with rules that are checked when it has decided and when its writes are done.
type checked struct {
	sequentialjob.Kind
	p *process
}

// Decide implements loop.Kind.
func (c checked) Decide(obs plan.Observed) plan.Plan { return c.p.checkDecision(obs) }

// Conclude implements loop.Kind.
func (c checked) Conclude(obs *plan.Observed, next plan.Plan, results plan.Results) sequentialjob.Outcome {
	return c.p.checkOutcome(obs, next, results)
}

// checkDecision decides, and checks rules.
func (p *process) checkDecision(obs plan.Observed) plan.Plan {
	obs = p.misread(obs)
	p.observed = obs
	reference := copied(obs)
	next := p.decide(obs)
	if len(next.Questions()) > 0 || next.Relabel != nil || next.Lags { // the decision is made again
		p.Seen["questions"]++
		return next
	}
	p.decided = true
	if p.Dice.IntN(16) != 0 { // comparing takes much longer than deciding
		reference = nil
	}
	p.Note("sync sees %s; decides %s", describe(obs), describePlan(next))
	p.Seen["decisions"]++
	p.rules.decided(obs, next, reference)
	return next
}

// checkOutcome returns what is left to do, and checks rules.
func (p *process) checkOutcome(obs *plan.Observed, next plan.Plan, results plan.Results) sequentialjob.Outcome {
	out := p.finish(*obs, next, results)
	p.rules.finished(*obs, next, out)
	return p.syncer.Conclude(obs, out)
}
