// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// process is a run of the controller. What it knows ends with it.
type process struct {
	*env
	sender *simulation.Sender
	syncer *endpoints.Syncer
	canary *endpoints.Canary
	handle *endpoints.Handle
	// caches are the caches that it follows all the time, and viewed those that it follows while it needs them.
	caches, viewed []simulation.Cache
	// unfilled is the cache of slices that a server which has just started refuses to fill until filledAt; nil once it is filled.
	unfilled simulation.Cache
	filledAt time.Time
	// checkAt is when it looks up the canary record again.
	checkAt time.Time

	// created are the slices that it knows it has created, and refusedAt is when a request of it was last refused.
	created   map[string]bool
	refusedAt time.Time
	// refusals are when requests were last refused, by verb and kind.
	refusals map[string]time.Time
	// deletedAt is when users last deleted or emptied slices, and repairedAt when the controller then wrote. guardedAt is when the guard last
	// had a reason to refuse to write them again: three times within a minute. Without pods there is nothing to write for a while.
	deletedAt, repairedAt []time.Time
	repairs               bool
	guardedAt             time.Time
	// failures is the number of look-ups in a row that DNS servers have answered without the record.
	failures int
}

// startProcess starts a controller that knows nothing.
func (e *env) startProcess() {
	p := &process{env: e, canary: &endpoints.Canary{Namespace: "system"}, handle: &endpoints.Handle{}, created: map[string]bool{}, refusals: map[string]time.Time{}}
	p.sender = e.NewSender(e.interlude)
	e.worker.Sender, e.worker.Generation = p.sender, p.asked
	e.worker.Forget()
	e.rules.untold = time.Time{} // it knows nothing of what was refused before
	e.process = p
	p.syncer = endpoints.NewSyncer(endpoints.Config{
		JobSets: setsOfNobody, Kube: kube{p: p}, Informers: factory.For(endpoints.Name), Recorder: recorder{p}, Clock: e.World, Workers: 1, Mode: e.mode,
		Canary: p.canary, Handle: p.handle,
	}, p, p.follow(&p.caches))
	starts := e.Dice.Percent(30)
	for _, c := range slices.Clone(p.caches) {
		if s, ok := c.(*informer[*discoveryv1.EndpointSlice]); ok && starts {
			p.unfilled, p.filledAt = s, e.Now().Add(time.Duration(e.Dice.IntN(15))*time.Second)
			p.caches = slices.DeleteFunc(p.caches, func(of simulation.Cache) bool { return of == c })
			continue
		}
		c.List()
	}
	p.syncer.Prepare()
	e.Note("controller starts")
}

// fill fills the cache of slices once the server has started.
func (e *env) fill() bool {
	p := e.process
	if p.unfilled == nil || e.Now().Before(p.filledAt) {
		return false
	}
	e.Note("controller sees slices")
	e.Seen["slices refused at first"]++
	p.unfilled.List()
	p.caches, p.unfilled, p.filledAt = append(p.caches, p.unfilled), nil, time.Time{}
	if e.calm {
		e.rules.reset() // before, the controller could not know which addresses are wrong
	}
	return true
}

// asked returns the set as the controller sees it: which it is, and whether it asks for slices of the controller.
func (p *process) asked(string) string {
	if js := p.seen(); js.UID != "" {
		return fmt.Sprint(js.UID, p.asks(js))
	}
	return ""
}

// seen returns the set as the controller sees it; an empty one if there is none.
func (p *process) seen() *jobsetv1alpha2.JobSet {
	for _, c := range p.caches {
		if seen, ok := c.(*informer[*jobsetv1alpha2.JobSet]); ok {
			if js, found := seen.Get(name); found {
				return js
			}
		}
	}
	return &jobsetv1alpha2.JobSet{}
}

// follow returns what declares caches, and adds them to a list.
func (p *process) follow(caches *[]simulation.Cache) func(informers.Need) endpoints.Cache {
	return func(need informers.Need) endpoints.Cache {
		declared, cache := p.declare(need)
		*caches = append(*caches, cache)
		return declared
	}
}

// Add and AddSoon make the process a queue.
func (p *process) Add(set cache.ObjectName)     { p.enqueue(set) }
func (p *process) AddSoon(set cache.ObjectName) { p.enqueue(set) }

func (p *process) enqueue(set cache.ObjectName) {
	if p.env.process == p {
		p.worker.Add(set.Name)
	}
}

// recorder notes that users are told.
type recorder struct{ p *process }

func (r recorder) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	if !r.p.mutant.silent {
		r.p.Seen["events"]++
		r.p.Note("  event %s: "+note, append([]any{reason}, args...)...)
		r.p.rules.told()
	}
}

// follows are all caches.
func (p *process) follows() []simulation.Cache {
	return append(p.caches[:len(p.caches):len(p.caches)], p.viewed...)
}

// sync lets the worker of the controller look at a set, if one waits for it.
func (e *env) sync() bool {
	if e.process.sender.Dead {
		e.startProcess()
	}
	p := e.process
	return e.worker.Sync(func(set string) (queue.Due, error) {
		e.Note("sync of %s: %s", set, e.describe())
		due, err := p.syncer.Sync(simulation.Quiet, cache.NewObjectName(namespace, set))
		if e.mutant.due != nil {
			due = e.mutant.due(due)
		}
		if err != nil && e.Traced() {
			e.Note("  %v", err)
		}
		return due, err
	})
}

// watch begins to follow what the controller wants to see, or ends it when nothing needs it.
func (e *env) watch() bool {
	p := e.process
	switch {
	case p.sender.Dead:
		return false
	case p.syncer.Wanted():
		e.Note("controller sees pods and Services")
		p.viewed = nil
		filled := p.syncer.Watch(p.follow(&p.viewed))
		for _, c := range p.viewed {
			c.List()
		}
		filled()
		e.Seen["views"]++
		return true
	case len(p.viewed) > 0 && !p.syncer.Needed():
		e.Note("controller sees no more pods and Services")
		p.viewed = nil
		p.syncer.Unwatch()
		e.Seen["views that ended"]++
		return true
	}
	return false
}

// What DNS servers answer but the record.
var (
	errNoRecord = errors.New("no such host")
	errNoAnswer = fmt.Errorf("%w: i/o timeout", endpoints.ErrUnknown)
)

// lookUp looks up the canary record.
func (e *env) lookUp() bool {
	p := e.process
	if p.sender.Dead || e.Now().Before(p.checkAt) {
		return false
	}
	p.canary.Resolves() // the loop waits for a first question, which does not matter here
	err := e.dns
	if p.mutant.presuming && errors.Is(err, endpoints.ErrUnknown) {
		err = errNoRecord
	}
	changed, again := p.canary.Note(simulation.Quiet, err)
	if p.mutant.nervous && err != nil {
		for range 2 {
			news, _ := p.canary.Note(simulation.Quiet, err)
			changed = changed || news
		}
	}
	switch {
	case e.dns == nil:
		p.failures = 0
	case errors.Is(e.dns, errNoRecord):
		p.failures++
	}
	e.Note("look-up of the record: %v, failed %d times", e.dns, p.failures)
	p.checkAt = e.Now().Add(again)
	if changed {
		p.syncer.LookAtAll()
	}
	return true
}

// undone notes that a user has deleted or emptied a slice, and that the guard of the process may refuse to write it again.
func (p *process) undone(now time.Time) {
	p.repairs = true
	p.deletedAt = p.thrice(p.deletedAt, now)
}

// repaired notes that the controller has written a slice, which is a reversal of what a user has done.
func (p *process) repaired(now time.Time) {
	if p.repairs {
		p.repairs = false
		p.repairedAt = p.thrice(p.repairedAt, now)
	}
}

// thrice returns the times within the last minute, and notes that there are three.
func (p *process) thrice(times []time.Time, now time.Time) []time.Time {
	times = append(slices.DeleteFunc(times, func(at time.Time) bool { return now.Sub(at) > time.Minute }), now)
	if len(times) >= 3 {
		p.guardedAt = now
	}
	return times
}
