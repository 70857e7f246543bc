// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// process is a run of the controller. What it knows ends with it.
type process struct {
	*env
	sender *simulation.Sender
	worker *simulation.Worker
	syncer *disaggregatedset.Syncer

	sets     simulation.Informer[disaggregatedSet]
	scalers  simulation.Informer[roleScaler]
	children simulation.Informer[leaderWorkerSet]
	services simulation.Informer[service]

	// observed is what the present pass acts on, and warned whether it has sent a warning.
	observed plan.Observed
	warned   bool
	// decided means that a decision was made.
	decided bool
	// conflict means that a pass has warned of a scaler that has one of our names.
	conflict bool
	// writes is the error of the writes of the present pass.
	writes error
	// cancel ends the time of the present pass, and end does so after so many requests; nil if it does not.
	cancel   func()
	end      func()
	requests int
}

// startProcess starts a controller. It lists everything first; client-go asks for the latest state then.
func (e *env) startProcess() {
	p := &process{env: e}
	p.sender = e.NewSender(e.interlude)
	interlude := p.sender.Interlude
	p.sender.Interlude = func() {
		if p.requests--; p.requests < 0 && p.end != nil {
			p.end()
		}
		interlude()
	}
	p.worker = &simulation.Worker{World: e.World, Sender: p.sender, Careless: e.careless}
	p.worker.Generation = func(string) string { return simulation.Generation(&p.sets, name) }
	look := func() { p.worker.Add(name) }
	p.sets = simulation.Informer[disaggregatedSet]{From: &e.sets.Store, Handle: func(disaggregatedSet, bool) { look() }}
	p.scalers = simulation.Informer[roleScaler]{From: &e.scalers.Store, Handle: func(roleScaler, bool) { look() }}
	p.children = watchChildren(&e.children.Store, look)
	p.services = watchChildren(&e.services.Store, look)
	for _, c := range p.caches() {
		c.List()
	}
	p.syncer = p.newSyncer()
	p.syncer.Loop.Kind = checked{p.syncer.Loop.Kind, p}
	e.process = p
	if len(p.sets.Objects) > 0 {
		look()
	}
	e.Note("controller starts")
}

func labeled[T metav1.Object](object T) bool {
	return object.GetLabels()[disaggregatedsetv1.SetNameLabelKey] != ""
}

// watchChildren returns a cache whose changes are a reason to look at the set if they concern it before or after.
func watchChildren[T metav1.Object](from *simulation.Store[T], look func()) simulation.Informer[T] {
	return simulation.Informer[T]{
		From: from, Selects: labeled[T], Handle: func(object T, _ bool) { lookIf(object, look) }, Before: func(object T) { lookIf(object, look) },
	}
}

func lookIf(object metav1.Object, look func()) {
	if orphan := plan.OrphanOf(object); ownedBySet(object) || orphan != nil && orphan.Set == name {
		look()
	}
}

func (p *process) caches() []simulation.Cache {
	return []simulation.Cache{&p.sets, &p.scalers, &p.children, &p.services}
}

func (p *process) newSyncer() *disaggregatedset.Syncer {
	writes := consistency.NewConsistencyStore(p, map[string]consistency.Versioned{
		"disaggregatedsets": &p.sets, "disaggregatedsetrolescalers": &p.scalers, "leaderworkersets": &p.children, "services": &p.services,
	})
	return disaggregatedset.NewSyncer(disaggregatedset.SyncerConfig{
		Host:   &children.Host{Runner: simulation.Runner{}, Consistency: writes, Clock: p, Denials: p.Denials(p.hurried), Shuffle: p.Dice.Perm},
		Caches: caches{p}, Recorder: recorder{p},
		Sets:             func(string) children.LiveOwnerClient[disaggregatedSet] { return setClient{p, p.setClient()} },
		LeaderWorkerSets: func(string) children.Client[leaderWorkerSet] { return p.leaderWorkerSetClient() },
		Services:         func(string) children.Client[service] { return p.serviceClient() },
		Scalers:          func(string) disaggregatedset.ScalerClient { return scalerClient{p.scalerClient()} },
	})
}

// sync lets the worker of the controller take the set from the queue, if it is there.
func (e *env) sync() {
	if e.process.sender.Dead {
		e.startProcess()
	}
	p := e.process
	p.worker.Sync(func(string) (queue.Due, error) {
		due, err := p.pass()
		switch {
		case e.restless && err == nil:
			due = queue.Due{Deadline: 1e9}
		case e.insistent && err != nil:
			due, err = queue.Due{Continue: true}, nil
		}
		return due, err
	})
}

// pass lets the real controller sync the set, and checks rules.
func (p *process) pass() (queue.Due, error) {
	p.observed, p.warned, p.writes = plan.Observed{}, false, nil
	ctx, end := context.WithCancel(simulation.Quiet)
	defer end()
	p.cancel, p.end = end, nil
	due, err := p.syncer.Sync(ctx, key)
	if p.observed.Set == nil {
		return due, err
	}
	if ctx.Err() != nil {
		p.Seen["passes whose time ended"]++
	}
	p.rules.ended(p.writes, err)
	return due, err
}

// checked is the real kind, with rules that are checked when it has decided and when its writes are done.
type checked struct {
	disaggregatedset.Kind
	p *process
}

// Decide implements loop.Kind.
func (c checked) Decide(obs plan.Observed) plan.Plan { return c.p.checkDecision(obs) }

// Apply implements loop.Kind.
func (c checked) Apply(ctx context.Context, obs *plan.Observed, next plan.Plan) (plan.Results, error) {
	return c.p.apply(ctx, obs, next)
}

// Conclude implements loop.Kind.
func (c checked) Conclude(obs *plan.Observed, next plan.Plan, results plan.Results) disaggregatedset.Outcome {
	return c.p.checkOutcome(obs, next, results)
}

// checkDecision decides, checks rules, and perhaps has the time of the pass end soon.
func (p *process) checkDecision(obs plan.Observed) plan.Plan {
	p.observed = obs
	next := p.decide(obs)
	p.replaceOthers(obs, &next)
	if p.Traced() {
		p.Note("pass sees %s; decides %s", describe(obs), describePlan(next))
	}
	p.Seen["decisions"]++
	p.rules.decided(obs, next)
	if p.Dice.Percent(p.faults.ending) {
		p.end, p.requests = p.cancel, p.Dice.IntN(6)
	}
	return next
}

// apply applies a plan, and keeps the error.
func (p *process) apply(ctx context.Context, obs *plan.Observed, next plan.Plan) (results plan.Results, err error) {
	results, p.writes = p.syncer.Apply(ctx, obs, next)
	return results, p.writes
}

// checkOutcome returns what is left to do, and checks rules.
func (p *process) checkOutcome(obs *plan.Observed, next plan.Plan, results plan.Results) disaggregatedset.Outcome {
	out := p.finish(*obs, next, results)
	p.rules.finished(*obs, out)
	return p.syncer.Conclude(obs, next, out)
}

// refusal returns whether something was refused. A name that was taken a moment ago is not, nor is one that an orphan
// has which no cache shows yet.
func refusal(err error) bool {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || errors.Is(err, simulation.ErrDead) {
		return false
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.Contains(line, "has just gone") && !strings.Contains(line, "is adopted soon") && !strings.Contains(line, "before anything was written") {
			return true
		}
	}
	return false
}

// recorder sees events.
type recorder struct{ p *process }

func (r recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.p.Seen["events: "+reason]++
	r.p.warned = r.p.warned || kind == corev1.EventTypeWarning
}

// caches are the caches of a process, which hold what the real ones hold.
type caches struct{ p *process }

func (c caches) Set(cache.ObjectName) (disaggregatedSet, error) {
	ds, _ := c.p.sets.Get(name)
	return ds, nil
}

func (c caches) LeaderWorkerSets(ds disaggregatedSet) (list []plan.Child, err error) {
	for _, lws := range c.p.children.Objects {
		if unreadable.Is(lws) && !c.p.credulous {
			continue
		}
		if metav1.IsControlledBy(lws, ds) || c.p.adopting && labeled(lws) {
			list = append(list, plan.ChildOf(lws))
		}
	}
	return list, nil
}

func (c caches) Services(ds disaggregatedSet) (list []plan.Service, err error) {
	for _, s := range c.p.services.Objects {
		if metav1.IsControlledBy(s, ds) {
			list = append(list, plan.ServiceOf(s))
		}
	}
	return list, nil
}

func (c caches) Scalers(ds disaggregatedSet) (list []roleScaler, err error) {
	for _, s := range c.p.scalers.Objects {
		if metav1.IsControlledBy(s, ds) {
			list = append(list, s)
		}
	}
	return list, nil
}

func (c caches) Scaler(key cache.ObjectName) (roleScaler, error) {
	s, _ := c.p.scalers.Get(key.Name)
	return s, nil
}

func (c caches) Orphans(cache.ObjectName) (list []plan.Orphan, err error) {
	list = orphansOf(c.p, list, c.p.children.Objects)
	list = orphansOf(c.p, list, c.p.services.Objects)
	return orphansOf(c.p, list, c.p.scalers.Objects), nil
}

func (c caches) Unreadable(ds disaggregatedSet) ([]plan.Unreadable, error) {
	return c.p.unreadable(ds), nil
}

func (c caches) Former(ds disaggregatedSet) (bool, error) {
	return !c.p.hasty && slices.ContainsFunc(c.p.children.Objects, func(lws leaderWorkerSet) bool {
		return ownedBySet(lws) && !metav1.IsControlledBy(lws, ds) && lws.DeletionTimestamp == nil
	}), nil
}

func orphansOf[T simulation.Object](p *process, list []plan.Orphan, objects []T) []plan.Orphan {
	for _, object := range objects {
		if p.sees != nil {
			object = object.DeepCopyObject().(T)
			p.sees(object)
		}
		if orphan := plan.OrphanOf(object); orphan != nil && orphan.Set == name {
			list = append(list, *orphan)
		}
	}
	return list
}
