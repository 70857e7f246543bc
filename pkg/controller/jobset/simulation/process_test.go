// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// maxLag is how long the real controller waits for a cache.
const maxLag = 30 * time.Second

// Resources whose versions the consistency store tracks.
const (
	resourceJobSets  = "jobsets"
	resourceJobs     = "jobs"
	resourceServices = "services"
	resourceClaims   = "persistentvolumeclaims"
)

var setKey = cache.NewObjectName(namespace, setName)

// process is a run of the controller. What it knows ends with it.
type process struct {
	*env
	sender *simulation.Sender
	worker *simulation.Worker

	jobSets  simulation.Informer[*jobsetv1alpha2.JobSet]
	jobs     simulation.Informer[*batchv1.Job]
	services simulation.Informer[*corev1.Service]
	claims   simulation.Informer[*corev1.PersistentVolumeClaim]
	// workloads and podGroups are followed if pods are scheduled in groups.
	workloads, podGroups simulation.Informer[*unstructured.Unstructured]
	memory               simulation.Memory
	// syncer is the real one.
	syncer *jobset.Syncer

	// knows is what this process has ever seen or written, and wrote what it has written since it last waited for the
	// caches to show that.
	knows, wrote progress
	lastWrite    time.Time
	// gaveUp means that the present sync does not wait any longer for the caches to show what was written.
	gaveUp bool
	// decided means that a decision was made.
	decided bool
	// observed is what the present sync acts on.
	observed plan.Observed
}

// progress is how far the versions of the set and of the Jobs have come.
type progress struct{ set, jobs int }

func (g *progress) note(set, jobs int) { g.set, g.jobs = max(g.set, set), max(g.jobs, jobs) }

// startProcess starts a controller. It lists everything first; client-go asks for the latest state then.
func (e *env) startProcess() {
	if e.faults.switching && e.process != nil && e.Dice.Percent(30) {
		e.gates.RestartJob, e.invariants.switched = !e.gates.RestartJob, true
		e.Note("feature gate RestartJob is set to %t", e.gates.RestartJob)
	}
	p := &process{env: e, sender: e.NewSender(e.interlude)}
	p.worker = &simulation.Worker{World: e.World, Sender: p.sender, Careless: e.careless}
	p.worker.Generation = func(string) string { return simulation.Generation(&p.jobSets, setName) }
	p.jobSets = simulation.Informer[*jobsetv1alpha2.JobSet]{From: &e.jobSets, Handle: func(*jobsetv1alpha2.JobSet, bool) { p.enqueue() }}
	p.jobs = simulation.Informer[*batchv1.Job]{From: &e.jobs.Store, Handle: p.jobChanged, Transform: e.transformed, Selects: hasSetName}
	p.services = simulation.Informer[*corev1.Service]{From: &e.services.Store, Handle: p.serviceChanged}
	p.claims = simulation.Informer[*corev1.PersistentVolumeClaim]{From: &e.claims.Store, Handle: p.claimChanged}
	if e.gangs != nil {
		e.gangs.listen(p)
	}
	for _, c := range p.caches() {
		c.List()
	}
	p.memory = simulation.NewMemory(e.World, e.forgetful, map[string]consistency.Versioned{
		resourceJobSets: &p.jobSets, resourceJobs: &p.jobs, resourceServices: &p.services, resourceClaims: &p.claims,
	})
	p.syncer = newSyncer(p)
	p.syncer.Loop.Kind = checked{p.syncer.Loop.Kind, p}
	p.knows = progress{number(p.jobSets.LastStoreSyncResourceVersion()), number(p.jobs.LastStoreSyncResourceVersion())}
	if len(p.jobSets.Objects) > 0 {
		p.enqueue()
	}
	e.process = p
	e.invariants.processStarted()
	e.Note("controller starts")
}

func (p *process) caches() []simulation.Cache {
	all := []simulation.Cache{&p.jobSets, &p.jobs, &p.services, &p.claims}
	if p.gangs != nil {
		all = append(all, &p.workloads, &p.podGroups)
	}
	return all
}

func (p *process) enqueue() { p.worker.Add(setName) }

// enqueueOwner enqueues the set if the object is a child of the very set that the cache holds.
func (p *process) enqueueOwner(child metav1.Object) {
	owner := metav1.GetControllerOfNoCopy(child)
	if js, found := p.jobSets.Get(setName); found && owner != nil && owner.UID == js.UID {
		p.enqueue()
	}
}

func (p *process) jobChanged(job *batchv1.Job, gone bool) {
	p.enqueueOwner(job)
	if gone {
		p.enqueueNamed(job)
	}
}

func (p *process) serviceChanged(service *corev1.Service, gone bool) {
	p.enqueueOwner(service)
	if js, found := p.jobSets.Get(setName); gone && found && helper.ServiceName(js) == service.Name {
		p.enqueue()
	}
}

func (p *process) claimChanged(claim *corev1.PersistentVolumeClaim, gone bool) {
	p.enqueueOwner(claim)
	if gone {
		p.enqueueNamed(claim)
	}
}

// enqueueNamed enqueues the set whose name is on a child. It may be another one than that which the child belonged to.
func (p *process) enqueueNamed(child metav1.Object) {
	if child.GetLabels()[jobsetv1alpha2.JobSetNameKey] == setName {
		p.enqueue()
	}
}

// sync lets a worker of the controller take the set from the queue, if it is there. It reports whether it was.
func (e *env) sync() bool {
	if e.process.sender.Dead {
		e.startProcess()
	}
	p := e.process
	if len(p.worker.Ready()) == 0 {
		return false
	}
	p.worker.SyncObject(setName, p.syncSet)
	return true
}

// syncSet lets the real controller sync the set.
func (p *process) syncSet(string) (queue.Due, error) {
	p.observed = plan.Observed{}
	return p.syncer.Sync(simulation.Quiet, setKey)
}

// checked is the real kind, with rules that are checked when it has decided and when its writes are done.
type checked struct {
	jobset.Kind
	p *process
}

// Decide implements loop.Kind.
func (c checked) Decide(obs plan.Observed) plan.Plan { return c.p.checkDecision(obs) }

// Conclude implements loop.Kind.
func (c checked) Conclude(obs *plan.Observed, next plan.Plan, results plan.Results) jobset.Outcome {
	return c.p.checkOutcome(obs, next, results)
}

// checkDecision decides, and checks invariants.
func (p *process) checkDecision(obs plan.Observed) plan.Plan {
	obs = p.misread(obs)
	p.observed = obs
	reference := p.invariants.reference(obs)
	next := p.decide(obs)
	p.decided = p.decided || next.Asks.Empty()
	if !next.Asks.Empty() {
		return next
	}
	p.noteDecision(next)
	p.invariants.decided(obs, next, reference)
	return next
}

// checkOutcome returns what is left to do, and checks invariants.
func (p *process) checkOutcome(obs *plan.Observed, next plan.Plan, results plan.Results) jobset.Outcome {
	out := p.finish(*obs, next, results)
	p.invariants.finished(*obs, next, results, out)
	return p.syncer.Conclude(obs, out)
}

// noteDecision adds what was seen and what was decided to the trace.
func (p *process) noteDecision(next plan.Plan) {
	if p.Traced() {
		p.Note("sync sees %s; decides %s", describe(p.observed), describePlan(next))
	}
}

// checkFreshness finds out whether the snapshot is older than what this process wrote, which only a long lag excuses.
func (p *process) checkFreshness() {
	js, _ := p.jobSets.Get(setName)
	seesSet, seesJobs := number(js.ResourceVersion), number(p.jobs.LastStoreSyncResourceVersion())
	p.gaveUp = seesSet < p.knows.set || seesJobs < p.knows.jobs
	if (seesSet < p.wrote.set || seesJobs < p.wrote.jobs) && p.Since(p.lastWrite) < maxLag {
		p.Fail("a snapshot is never older than the writes of the process", "the set is seen at %d, the Jobs are at %d, but %+v was written", seesSet, seesJobs, p.wrote)
	}
	p.wrote = progress{}
	p.knows.note(seesSet, seesJobs)
}
