// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// process is a run of the controller. What it knows ends with it.
type process struct {
	*env
	sender *simulation.Sender

	sets         simulation.Informer[*leaderworkersetv1.LeaderWorkerSet]
	statefulSets simulation.Informer[*appsv1.StatefulSet]
	pods         simulation.Informer[*corev1.Pod]
	services     simulation.Informer[*corev1.Service]
	revisions    simulation.Informer[*appsv1.ControllerRevision]
	podGroups    simulation.Informer[*unstructured.Unstructured]
	memory       simulation.Memory
	// known are the pods that the cache has shown, and whether they are being deleted.
	known map[types.UID]bool
	// losses and syncer are the real ones.
	losses *leaderworkerset.Losses
	syncer *leaderworkerset.Syncer

	worker *simulation.Worker
	// listed are the pods that the cache had first.
	listed []*corev1.Pod
	// compares means that rules compare the decisions of this sync, which takes much longer than to decide.
	compares bool
	// startedAt is when it has started, shownAt is when its caches last had everything, and rivals means that another controller leads.
	startedAt, shownAt time.Time
	rivals             bool
}

// startProcess starts the controller that leads.
func (e *env) startProcess() {
	e.process = e.newProcess(false)
	e.rules.processStarted()
	e.Note("controller starts")
}

// newProcess returns a controller. It lists everything first; client-go asks for the latest state then.
func (e *env) newProcess(rivals bool) *process {
	p := &process{env: e, rivals: rivals, startedAt: e.Now(), shownAt: e.Now(), losses: leaderworkerset.NewLosses(), known: map[types.UID]bool{}}
	p.sender = e.NewSender(e.interlude)
	p.worker = &simulation.Worker{World: e.World, Sender: p.sender, Careless: e.careless, Eager: e.eager}
	p.worker.Generation = func(string) string { return simulation.Generation(&p.sets, name) }
	p.worker.Add(name)
	p.sets = informer(p, &e.sets)
	p.statefulSets = informer(p, &e.statefulSets)
	p.statefulSets.Handle = func(sts *appsv1.StatefulSet, gone bool) {
		if p.worker.Add(name); gone {
			p.losses.Forget(sts.UID)
		}
	}
	p.pods = informer(p, &e.pods)
	p.pods.Handle = p.podChanged
	p.services = informer(p, &e.services)
	p.revisions = informer(p, &e.revisions)
	p.podGroups = informer(p, &e.podGroups)
	for _, c := range p.caches() {
		c.List()
	}
	p.listed = p.pods.Objects
	for _, pod := range p.pods.Objects {
		p.podChanged(pod, false)
	}
	p.memory = simulation.NewMemory(e.World, e.forgetful, map[string]consistency.Versioned{
		"leaderworkersets": &p.sets, "statefulsets": &p.statefulSets, "pods": &p.pods, "services": &p.services, "controllerrevisions": &p.revisions,
		"podgroups": &p.podGroups,
	})
	p.syncer = newSyncer(p)
	p.syncer.Loop.Kind = checked{p.syncer.Loop.Kind, p}
	return p
}

func informer[T metav1.Object](p *process, from *simulation.Store[T]) simulation.Informer[T] {
	return simulation.Informer[T]{From: from, Handle: func(T, bool) { p.worker.Add(name) }}
}

func (p *process) caches() []simulation.Cache {
	return []simulation.Cache{&p.sets, &p.statefulSets, &p.pods, &p.services, &p.revisions, &p.podGroups}
}

// sync lets a worker of the controller take the set from the queue, if it is there. It reports whether it was.
func (e *env) sync() bool {
	if e.process.sender.Dead {
		if e.outage {
			return false // it waits for the server
		}
		e.startProcess()
	}
	return e.process.act()
}

// act lets a worker take the set from its queue.
func (p *process) act() bool {
	return p.worker.Sync(func(string) (queue.Due, error) { return p.syncSet() })
}

// syncSet lets the real controller sync the set.
func (p *process) syncSet() (queue.Due, error) {
	defer func() { p.rules.observed = nil }()
	shown, found := p.sets.Get(name)
	before := p.writes
	due, err := p.syncer.Sync(simulation.Quiet, key)
	if found && unreadable.Is(shown) && p.writes != before {
		p.Fail(simulation.RuleUnreadable, "%d times", p.writes-before)
	}
	if found && unreadable.Is(shown) {
		p.Seen["passes that know nothing of the set"]++
	}
	if p.storming && err != nil {
		due.Continue, err = true, nil
	}
	return due, err
}

// checked is the real kind, with rules that are checked when it has decided and when its writes are done.
type checked struct {
	leaderworkerset.Kind
	p *process
}

// Decide implements loop.Kind.
func (c checked) Decide(obs plan.Observed) plan.Plan { return c.p.checkDecision(obs) }

// Conclude implements loop.Kind.
func (c checked) Conclude(obs *plan.Observed, next plan.Plan, results plan.Results) leaderworkerset.Outcome {
	return c.p.checkOutcome(obs, next, results)
}

// checkDecision decides, and checks rules.
func (p *process) checkDecision(obs plan.Observed) plan.Plan {
	obs = p.misread(obs)
	if p.rules.observed == nil { // the first decision of a sync
		p.compares = p.Dice.IntN(16) == 0
	}
	var reference *plan.Observed
	if p.compares {
		reference = copied(obs)
	}
	next := p.decide(obs)
	if p.Traced() {
		p.Note("sync sees %s; decides %s", describe(obs), describePlan(next))
	}
	p.Seen["decisions"]++
	p.rules.decided(obs, next, reference)
	p.rules.observed = &obs
	return next
}

// checkOutcome returns what is left to do.
func (p *process) checkOutcome(obs *plan.Observed, next plan.Plan, results plan.Results) leaderworkerset.Outcome {
	return p.syncer.Conclude(obs, p.finish(*obs, next, results))
}
