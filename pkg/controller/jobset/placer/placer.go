// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placer finds out where the Jobs of sets with exclusive placement run. It watches nodes and pods while any set asks, has package
// placement decide about all sets that wait, and remembers what it has given away until the status of a set says so.
package placer

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// gather is how long changes of the cluster are gathered before the sets that wait are looked at again.
const gather = time.Second

// newsAfter is how long the message stays that says why a set waits.
const newsAfter = time.Minute

// watchedAfter is how long it takes as a rule until nodes and pods are known.
const watchedAfter = 10 * time.Second

const (
	reasonUnknown  = helper.ReasonNodesUnknown
	reasonNoDomain = helper.ReasonNoDomain
	reasonInvalid  = helper.ReasonInvalidTemplate
)

// Config is what a Placer needs.
type Config struct {
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Clock provides the time.
	Clock clock.WithDelayedExecution
	// Placed returns the sets that have a placement, as the cache has them.
	Placed func() ([]*jobsetv1alpha2.JobSet, error)
	// Wake is called for sets that are to be looked at again.
	Wake func(cache.ObjectName)
	// Needed returns whether any set asks for exclusive placement.
	Needed func() bool
	// WhenFull is what becomes of sets for whose Jobs there are not enough domains.
	WhenFull placement.WhenFull
	// MoveAfter is how long pods wait for nodes before their Job moves to another domain; 0 is placement.DefaultMoveAfter.
	MoveAfter time.Duration
}

// Placer places Jobs.
type Placer struct {
	Config
	// watch shows nodes and pods.
	watch source

	mu sync.Mutex
	// waiting are the requests of sets that wait for domains.
	waiting map[cache.ObjectName]*waiting
	// given are the placements that no status is known to hold yet.
	given map[cache.ObjectName]given
	// moves are what Move has decided since.
	moves
	// turn counts how often sets were woken that wait.
	turn int
	// current is true while nothing has happened since the results of those that wait.
	current bool
	timer   clock.Timer
	// due is when the timer ends.
	due time.Time
}

// waiting is a set that waits for domains.
type waiting struct {
	js       *jobsetv1alpha2.JobSet
	unplaced []domains.Unplaced
	request  placement.Request
	// answer is why the set waits, and since when that is the answer.
	answer *domains.Placed
	since  time.Time
	// woken is the turn in which the set was last woken.
	woken int
	// asked is since when the set waits to be placed at all, because nodes and pods are not known.
	asked time.Time
}

// given is what a set was given.
type given struct {
	uid    types.UID
	answer *domains.Placed
}

// New returns a Placer that has given nothing away.
func New(config Config) *Placer {
	p := newPlacer(config)
	p.watch = (&informers.OnDemand[view]{
		Name: "placement", Kube: config.Kube, Filled: p.known, Needed: config.Needed,
		Declare: func(kind *informers.Kind) *view {
			view := declare(kind, p.follow)
			view.now = config.Clock.Now
			return view
		},
	}).Prepare()
	return p
}

func newPlacer(config Config) *Placer {
	return &Placer{Config: config, waiting: map[cache.ObjectName]*waiting{}, given: map[cache.ObjectName]given{}, moves: newMoves()}
}

// Run watches what placements depend on, while any set asks for one, until the context ends.
func (p *Placer) Run(ctx context.Context) { p.watch.Run(ctx) }

// Place returns what became of the question for the domains of the unplaced Jobs of a set. It returns nil while that is
// not known; then the set is woken once it is.
func (p *Placer) Place(ctx context.Context, js *jobsetv1alpha2.JobSet, unplaced []domains.Unplaced) (*domains.Placed, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := cache.MetaObjectToName(js)
	g, gave := p.given[key]
	if gave && g.uid == js.UID && answers(g.answer.Placement, js, unplaced) {
		return g.answer, nil
	}
	delete(p.given, key)
	w := p.waiting[key]
	known := w != nil && p.current && w.isFor(js, unplaced)
	if w == nil || w.js.UID != js.UID {
		w = &waiting{}
		p.waiting[key] = w
	}
	w.js, w.unplaced = js, unplaced
	view := p.watch.View()
	if view == nil {
		return p.unwatched(w), nil
	}
	if !known {
		if err := p.decide(ctx, view, p.concerned(key, w, gave), key); err != nil {
			return nil, err
		}
	}
	if g, found := p.given[key]; found {
		return g.answer, nil
	}
	return w.answer, nil
}

// concerned returns the sets to decide about because a set asks which was given domains before or not: all that wait, unless nothing has
// become free since the others had to wait, and this set gives nothing back.
func (p *Placer) concerned(key cache.ObjectName, w *waiting, gave bool) map[cache.ObjectName]*waiting {
	if p.current && !gave && w.js.Status.Placement == nil {
		return map[cache.ObjectName]*waiting{key: w}
	}
	return p.waiting
}

// isFor reports whether the question of a set is the one that was answered.
func (w *waiting) isFor(js *jobsetv1alpha2.JobSet, unplaced []domains.Unplaced) bool {
	return w.js.UID == js.UID && w.js.Generation == js.Generation && w.js.Status.Restarts == js.Status.Restarts &&
		equality.Semantic.DeepEqual(w.unplaced, unplaced)
}

// unwatched returns the answer to a set while nodes and pods are not known: none at first, and then why they are not.
func (p *Placer) unwatched(w *waiting) *domains.Placed {
	now := p.Clock.Now()
	if w.asked.IsZero() {
		w.asked = now
	}
	left := watchedAfter - now.Sub(w.asked)
	if left <= 0 {
		w.explain(now, reasonUnknown, unknownMessage(p.watch.Unfilled()))
		left = newsAfter
	}
	p.wakeAfter(left)
	return w.answer
}

// unknownMessage says which resources are not known. There are none to name while their watches are still to begin.
func unknownMessage(unfilled []string) string {
	const message = "nodes and pods are not known yet"
	if len(unfilled) == 0 {
		return message
	}
	return message + ": " + strings.Join(unfilled, ", ")
}

// answers reports whether a placement is about the present attempt of a set, and has all Jobs that are unplaced.
func answers(at *jobsetv1alpha2.Placement, js *jobsetv1alpha2.JobSet, unplaced []domains.Unplaced) bool {
	status := &jobsetv1alpha2.JobSetStatus{Restarts: js.Status.Restarts, Placement: at}
	for _, u := range unplaced {
		entry := helper.PlacementOf(status, js.Spec.ReplicatedJobs[u.Place].Name, u.Topology)
		if entry == nil || int(u.Indexes[len(u.Indexes)-1]) >= len(entry.Jobs) {
			return false
		}
		for k, index := range u.Indexes {
			if entry.Jobs[index].Restarts != u.Restarts[k] {
				return false
			}
		}
	}
	return true
}

// decide places sets that wait, as far as possible, and wakes each set with a new result except the one that asks.
func (p *Placer) decide(ctx context.Context, view *view, sets map[cache.ObjectName]*waiting, asks cache.ObjectName) error {
	start := p.Clock.Now()
	requests := make([]placement.Request, 0, len(sets))
	names := make(map[placement.Name]cache.ObjectName, len(sets))
	for key, w := range sets {
		var err error
		if w.request, err = view.requestOf(w.js, w.unplaced); err != nil {
			if w.explain(start, reasonInvalid, err.Error()) && key != asks {
				p.Wake(key)
			}
			continue
		}
		requests = append(requests, w.request)
		names[w.request.Set] = key
	}
	present, err := p.present()
	if err != nil {
		return err
	}
	cluster := view.cluster()
	for _, result := range placement.Place(&cluster, present, requests, p.WhenFull) {
		key := names[result.Set]
		if p.record(key, result, start) && key != asks {
			p.Wake(key)
		}
	}
	p.current = true
	klog.FromContext(ctx).V(3).Info("Placed Jobs", "sets", len(requests), "waiting", len(p.waiting), "nodes", len(cluster.Nodes), "took",
		p.Clock.Since(start))
	return nil
}

// record notes what became of the request of a set, and returns whether that is news.
func (p *Placer) record(key cache.ObjectName, result placement.Result, now time.Time) bool {
	w := p.waiting[key]
	if result.Action == placement.Wait {
		return w.explain(now, reasonNoDomain, result.Shortage.Message())
	}
	answer := &domains.Placed{Placement: placementFrom(w.js, w.request, w.unplaced, result.Assignments)}
	if result.Action == placement.Affinity {
		answer.Reason, answer.Message = reasonNoDomain, result.Shortage.Message()
	}
	p.given[key] = given{w.js.UID, answer}
	delete(p.waiting, key)
	return true
}

// explain notes why the set waits, and returns whether that is news. Other words for the same reason are none for a
// while: each would be written to the set.
func (w *waiting) explain(now time.Time, reason, message string) (news bool) {
	if w.answer != nil && w.answer.Reason == reason && (w.answer.Message == message || now.Sub(w.since) < newsAfter) {
		return false
	}
	w.answer, w.since = &domains.Placed{Reason: reason, Message: message}, now
	return true
}

// present returns the domains that sets have, also those whose Jobs are being placed again.
func (p *Placer) present() (out []placement.Assignment, err error) {
	sets, err := p.Placed()
	if err != nil {
		return nil, err
	}
	seen := make(map[cache.ObjectName]bool, len(sets))
	for _, js := range sets {
		key := cache.MetaObjectToName(js)
		at := js.Status.Placement
		if g, found := p.given[key]; found && g.uid == js.UID {
			at = g.answer.Placement
		}
		seen[key] = true
		out = append(out, assignments(key, at)...)
	}
	for key, g := range p.given {
		if !seen[key] {
			out = append(out, assignments(key, g.answer.Placement)...)
		}
	}
	return append(out, p.moves.assignments()...), nil
}
