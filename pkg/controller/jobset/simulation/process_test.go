// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// Waiting times of the real controller.
const (
	lagRetry   = time.Second
	maxLag     = 30 * time.Second
	minBackoff = 100 * time.Millisecond
	maxBackoff = 2 * time.Minute
	// freedNameRetry is how soon a Job is created whose name was taken a moment ago.
	freedNameRetry = time.Second
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
	*world
	dead, deposed bool

	jobSets  informer[*jobsetv1alpha2.JobSet]
	jobs     informer[*batchv1.Job]
	services informer[*corev1.Service]
	claims   informer[*corev1.PersistentVolumeClaim]
	writes   *controller.ConsistencyStore

	// queued tells that the set waits for a worker, due when it will, and failures how many syncs failed in a row.
	queued   bool
	due      time.Time
	failures int

	// knows is what this process has ever seen or written, and wrote what it has written since it last waited for the
	// caches to show that.
	knows, wrote progress
	lastWrite    time.Time
	// noted is what was seen and held back.
	noted plan.Noted
	// createFrom is the place in the set of the Job that is due to be created first.
	createFrom int64
	// takenNames are those of the Jobs that the present sync could not create because others have them.
	takenNames []string
	// impatient tells that the present sync does not wait any longer for the caches to show what was written.
	impatient bool
	// observed is what the present sync acts on.
	observed plan.Observed
}

// progress is how far the versions of the set and of the Jobs have come.
type progress struct{ set, jobs int }

func (g *progress) note(set, jobs int) { g.set, g.jobs = max(g.set, set), max(g.jobs, jobs) }

// startProcess starts a controller. It lists everything first; client-go asks for the latest state then.
func (w *world) startProcess() {
	if w.mood.switching && w.process != nil && w.dice.percent(30) {
		w.gates.RestartJob, w.referee.switched = !w.gates.RestartJob, true
		w.note("feature gate RestartJob is set to %t", w.gates.RestartJob)
	}
	p := &process{world: w}
	p.jobSets = informer[*jobsetv1alpha2.JobSet]{from: &w.jobSets, handle: func(*jobsetv1alpha2.JobSet, bool) { p.enqueue() }}
	p.jobs = informer[*batchv1.Job]{from: &w.jobs, handle: p.jobChanged, transform: w.transformed, selects: hasSetName}
	p.services = informer[*corev1.Service]{from: &w.services, handle: p.serviceChanged}
	p.claims = informer[*corev1.PersistentVolumeClaim]{from: &w.claims, handle: p.claimChanged}
	p.jobSets.list()
	p.jobs.list()
	p.services.list()
	p.claims.list()
	p.writes = controller.NewConsistencyStore(w, map[string]controller.Versioned{
		resourceJobSets: &p.jobSets, resourceJobs: &p.jobs, resourceServices: &p.services, resourceClaims: &p.claims,
	})
	p.knows = progress{number(p.jobSets.version), number(p.jobs.version)}
	p.queued = len(p.jobSets.objects) > 0
	w.process = p
	w.referee.processStarted()
	w.note("controller starts")
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
func (w *world) sync() {
	if w.process.dead {
		w.startProcess()
	}
	p := w.process
	if !p.due.IsZero() && !w.now.Before(p.due) {
		p.queued, p.due = true, time.Time{}
	}
	if !p.queued {
		return
	}
	p.queued = false
	w.seen[syncs]++
	after, err := p.syncSet()
	switch {
	case p.dead || p.deposed:
		p.dead = true
		w.seen[kills]++
	case err != nil && !w.careless:
		w.note("  sync failed: %v", err)
		w.seen[failedSyncs]++
		p.dueAfter(min(minBackoff<<min(p.failures, 20), maxBackoff))
		p.failures++
	default:
		p.failures = 0
		if after > 0 {
			p.dueAfter(after)
		}
	}
}

func (p *process) syncSet() (time.Duration, error) {
	wait := p.observe()
	if p.observed.JobSet == nil {
		return wait, nil
	}
	reference := p.referee.reference(p.observed)
	next := p.decide(p.observed)
	p.noteDecision(next)
	p.referee.decided(p.observed, next, reference)
	return next.RequeueAfter, p.goOn(next, p.apply(next))
}

// observe does what the real one does. No set and a time mean that the caches lag.
func (p *process) observe() time.Duration {
	p.observed = plan.Observed{}
	if !p.forgetful && !p.writes.VersionsShown(setKey) {
		p.seen[lags]++
		return lagRetry
	}
	js, found := p.jobSets.get(setName)
	if !found {
		p.writes.Forget(setKey)
		p.knows, p.wrote = progress{}, progress{}
		p.noted, p.createFrom = plan.Noted{}, 0
		return 0
	}
	jobs := ownedBy(js.UID, p.jobs.objects)
	if !p.forgetful && !p.writes.DeletionsShown(setKey, asObjects(jobs)) {
		p.seen[lags]++
		return lagRetry
	}
	p.checkFreshness()
	p.observed = plan.Observed{JobSet: js, Jobs: jobs, Claims: sets.New[string](), Noted: p.noted, CreateFrom: p.createFrom, Now: metav1.NewTime(p.now), Gates: p.gates}
	_, p.observed.ServiceExists = p.services.get(helper.ServiceName(js))
	for _, name := range helper.ClaimNames(js) {
		if _, found := p.claims.get(name); found {
			p.observed.Claims.Insert(name)
		}
	}
	return 0
}

// checkFreshness finds out whether the snapshot is older than what this process wrote, which only a long lag excuses.
func (p *process) checkFreshness() {
	js, _ := p.jobSets.get(setName)
	seesSet, seesJobs := number(js.ResourceVersion), number(p.jobs.version)
	p.impatient = seesSet < p.knows.set || seesJobs < p.knows.jobs
	if (seesSet < p.wrote.set || seesJobs < p.wrote.jobs) && p.Since(p.lastWrite) < maxLag {
		p.fail("rule %q: the set is seen at %d, the Jobs are at %d, but %+v was written",
			"a snapshot is never older than the writes of the process", seesSet, seesJobs, p.wrote)
	}
	p.wrote = progress{}
	p.knows.note(seesSet, seesJobs)
}

// remember remembers an own write.
func (p *process) remember(resource string, version int) {
	p.writes.Wrote(setKey, resource, strconv.Itoa(version))
	p.lastWrite = p.now
	switch resource {
	case resourceJobSets:
		p.knows.note(version, 0)
		p.wrote.note(version, 0)
	case resourceJobs:
		p.knows.note(0, version)
		p.wrote.note(0, version)
	}
}

// deleted remembers that the deletion of a Job was accepted.
func (p *process) deleted(uid types.UID) {
	p.writes.Deleted(setKey, uid)
	p.lastWrite = p.now
}

func asObjects(jobs []*batchv1.Job) []metav1.Object {
	objects := make([]metav1.Object, 0, len(jobs))
	for _, job := range jobs {
		objects = append(objects, job)
	}
	return objects
}
