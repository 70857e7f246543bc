// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/queue"
)

// Waiting times of the real controller.
const (
	maxLag = 30 * time.Second
)

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
	dead, deposed bool

	jobSets  informer[*jobsetv1alpha2.JobSet]
	jobs     informer[*batchv1.Job]
	services informer[*corev1.Service]
	claims   informer[*corev1.PersistentVolumeClaim]
	writes   *consistency.ConsistencyStore
	// syncer is the real one.
	syncer *jobset.Syncer

	// queued means that the set waits for a worker, due when it will, and pace when it does so after a sync.
	queued bool
	due    time.Time
	pace   queue.Pace

	// knows is what this process has ever seen or written, and wrote what it has written since it last waited for the
	// caches to show that.
	knows, wrote progress
	lastWrite    time.Time
	// gaveUp means that the present sync does not wait any longer for the caches to show what was written.
	gaveUp bool
	// observed is what the present sync acts on.
	observed plan.Observed
}

// progress is how far the versions of the set and of the Jobs have come.
type progress struct{ set, jobs int }

func (g *progress) note(set, jobs int) { g.set, g.jobs = max(g.set, set), max(g.jobs, jobs) }

// startProcess starts a controller. It lists everything first; client-go asks for the latest state then.
func (e *env) startProcess() {
	if e.faults.switching && e.process != nil && e.dice.percent(30) {
		e.gates.RestartJob, e.invariants.switched = !e.gates.RestartJob, true
		e.note("feature gate RestartJob is set to %t", e.gates.RestartJob)
	}
	p := &process{env: e}
	p.jobSets = informer[*jobsetv1alpha2.JobSet]{from: &e.jobSets, handle: func(*jobsetv1alpha2.JobSet, bool) { p.enqueue() }}
	p.jobs = informer[*batchv1.Job]{from: &e.jobs, handle: p.jobChanged, transform: e.transformed, selects: hasSetName}
	p.services = informer[*corev1.Service]{from: &e.services, handle: p.serviceChanged}
	p.claims = informer[*corev1.PersistentVolumeClaim]{from: &e.claims, handle: p.claimChanged}
	p.jobSets.list()
	p.jobs.list()
	p.services.list()
	p.claims.list()
	p.writes = consistency.NewConsistencyStore(e, map[string]consistency.Versioned{
		resourceJobSets: &p.jobSets, resourceJobs: &p.jobs, resourceServices: &p.services, resourceClaims: &p.claims,
	})
	p.syncer = newSyncer(p)
	p.syncer.Decide, p.syncer.Loop.Conclude = p.checkDecision, p.checkOutcome
	p.knows = progress{number(p.jobSets.version), number(p.jobs.version)}
	p.queued = len(p.jobSets.objects) > 0
	e.process = p
	e.invariants.processStarted()
	e.note("controller starts")
}

func (p *process) enqueue() { p.queued = true }

// enqueueOwner enqueues the set if the object is a child of the very set that the cache holds.
func (p *process) enqueueOwner(child metav1.Object) {
	owner := metav1.GetControllerOfNoCopy(child)
	if js, found := p.jobSets.get(setName); found && owner != nil && owner.UID == js.UID {
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
	if js, found := p.jobSets.get(setName); gone && found && helper.ServiceName(js) == service.Name {
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

// dueAfter makes the set wait for a worker after some time, unless it does so earlier anyway.
func (p *process) dueAfter(d time.Duration) {
	if at := p.now.Add(d); p.due.IsZero() || at.Before(p.due) {
		p.due = at
	}
}

// sync lets a worker of the controller take the set from the queue, if it is there.
func (e *env) sync() {
	if e.process.dead {
		e.startProcess()
	}
	p := e.process
	if !p.due.IsZero() && !e.now.Before(p.due) {
		p.queued, p.due = true, time.Time{}
	}
	if !p.queued {
		return
	}
	p.queued = false
	e.seen[syncs]++
	due, err := p.syncSet()
	switch {
	case p.dead || p.deposed:
		p.dead = true
		e.seen[kills]++
	case err != nil && !e.careless:
		e.note("  sync failed: %v", err)
		e.seen[failedSyncs]++
	}
	if after, again := p.pace.Next(due, err != nil && !e.careless); again {
		p.dueAfter(after)
	}
}

// syncSet lets the real controller sync the set.
func (p *process) syncSet() (queue.Due, error) {
	p.observed = plan.Observed{}
	return p.syncer.Sync(quiet, setKey)
}

// checkDecision decides, and checks invariants.
func (p *process) checkDecision(obs plan.Observed) plan.Plan {
	p.observed = obs
	reference := p.invariants.reference(obs)
	next := p.decide(obs)
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
	if p.trace != nil {
		p.note("sync sees %s; decides %s", describe(p.observed), describePlan(next))
	}
}

// checkFreshness finds out whether the snapshot is older than what this process wrote, which only a long lag excuses.
func (p *process) checkFreshness() {
	js, _ := p.jobSets.get(setName)
	seesSet, seesJobs := number(js.ResourceVersion), number(p.jobs.version)
	p.gaveUp = seesSet < p.knows.set || seesJobs < p.knows.jobs
	if (seesSet < p.wrote.set || seesJobs < p.wrote.jobs) && p.Since(p.lastWrite) < maxLag {
		p.fail("rule %q: the set is seen at %d, the Jobs are at %d, but %+v was written",
			"a snapshot is never older than the writes of the process", seesSet, seesJobs, p.wrote)
	}
	p.wrote = progress{}
	p.knows.note(seesSet, seesJobs)
}
