// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

var goodputDesc = metrics.NewDesc("jobset_goodput_ratio",
	"Share of the life of a JobSet, from its creation to its end or to now, in which all of its Jobs were ready. Holds the latest 2000 names.",
	[]string{labelJobSet, labelNamespace}, nil, metrics.ALPHA, "")

// goodput is the share of their lives that sets were of use, as of the time when somebody asks.
var goodput = newGoodputs(clock.RealClock{})

// goodputs is what the share follows from, for a bounded number of sets.
type goodputs struct {
	metrics.BaseStableCollector
	clock clock.PassiveClock
	// shown tells that this controller leads. Others know as much, but a sum must not count sets twice.
	shown atomic.Bool

	mu     sync.Mutex
	known  map[cache.ObjectName]life
	latest []cache.ObjectName
}

// life is that of a set so far.
type life struct {
	created, ended time.Time
	// ready is how long all Jobs were ready in attempts that have ended, since is when they became so in the present one.
	ready time.Duration
	since time.Time
}

var _ metrics.StableCollector = &goodputs{}

func newGoodputs(c clock.PassiveClock) *goodputs {
	return &goodputs{clock: c, known: map[cache.ObjectName]life{}}
}

// set notes how far a set is. One that has never run has no share yet.
func (g *goodputs) set(js *jobsetv1alpha2.JobSet) {
	n := len(js.Status.Attempts)
	if n == 0 {
		return
	}
	l := life{
		created: js.CreationTimestamp.Time, ended: endOf(js),
		ready: time.Duration(js.Status.ReadyMilliseconds) * time.Millisecond,
	}
	if last := &js.Status.Attempts[n-1]; last.EndTime == nil && last.ReadyTime != nil {
		l.since = last.ReadyTime.Time
	}
	name := cache.MetaObjectToName(js)
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, found := g.known[name]; !found {
		g.latest = append(g.latest, name)
	}
	g.known[name] = l
	if len(g.latest) > maxSeries {
		delete(g.known, g.latest[0])
		g.latest = g.latest[1:]
	}
}

// forget drops a set that was deleted.
func (g *goodputs) forget(js *jobsetv1alpha2.JobSet) {
	name := cache.MetaObjectToName(js)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, name)
	g.latest = slices.DeleteFunc(g.latest, func(other cache.ObjectName) bool { return other == name })
}

// share is how much of the life was of use.
func (l life) share(now time.Time) float64 {
	if !l.ended.IsZero() {
		now = l.ended
	}
	ready, lived := l.ready, now.Sub(l.created)
	if !l.since.IsZero() {
		ready += max(0, now.Sub(l.since))
	}
	if lived <= 0 {
		return 0
	}
	return min(1, ready.Seconds()/lived.Seconds())
}

// DescribeWithStability implements metrics.StableCollector.
func (g *goodputs) DescribeWithStability(to chan<- *metrics.Desc) { to <- goodputDesc }

// CollectWithStability implements metrics.StableCollector.
func (g *goodputs) CollectWithStability(to chan<- metrics.Metric) {
	if !g.shown.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	for _, name := range g.latest {
		to <- metrics.NewLazyConstMetric(goodputDesc, metrics.GaugeValue, g.known[name].share(now), name.Name, name.Namespace)
	}
}
