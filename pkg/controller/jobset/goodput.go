// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
)

var goodputDesc = metrics.NewDesc("jobset_goodput_ratio",
	"Fraction of the time from the creation of a JobSet until it finished, or until now, in which all of its Jobs were ready. Holds the latest 2000 names.",
	[]string{labelJobSet, labelNamespace}, nil, metrics.ALPHA, "")

// goodput computes the goodput of sets when metrics are collected.
var goodput = newGoodputs(clock.RealClock{})

// goodputs holds what the goodput follows from, for a bounded number of sets.
type goodputs struct {
	metrics.BaseStableCollector
	clock clock.PassiveClock
	// shown means that this controller leads. Others know as much, but a sum must not count sets twice.
	shown atomic.Bool

	mu     sync.Mutex
	known  map[cache.ObjectName]helper.Goodput
	latest []cache.ObjectName
}

var _ metrics.StableCollector = &goodputs{}

func newGoodputs(c clock.PassiveClock) *goodputs {
	return &goodputs{clock: c, known: map[cache.ObjectName]helper.Goodput{}}
}

// set records a set. One that has never run has no goodput yet.
func (g *goodputs) set(js *jobsetv1alpha2.JobSet) {
	if len(js.Status.Attempts) == 0 {
		return
	}
	name := cache.MetaObjectToName(js)
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, found := g.known[name]; !found {
		g.latest = append(g.latest, name)
	}
	g.known[name] = helper.GoodputOf(js)
	if len(g.latest) > children.MaxSeries {
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
		to <- metrics.NewLazyConstMetric(goodputDesc, metrics.GaugeValue, g.known[name].Ratio(now), name.Name, name.Namespace)
	}
}
