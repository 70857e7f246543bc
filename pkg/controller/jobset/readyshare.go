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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

var readyShareDesc = metrics.NewDesc("jobset_ready_ratio",
	"Fraction of the time from the creation of a JobSet until it finished, or until now, in which all of its Jobs were ready. Holds the "+
		"latest 2000 names.",
	[]string{labelJobSet, labelNamespace}, nil, metrics.ALPHA, "")

var goodputDesc = metrics.NewDesc("jobset_goodput_ratio",
	"Fraction of the time from the creation of a JobSet until it finished, or until now, in which it did work that a checkpoint has kept. "+
		"Only JobSets whose job reports its checkpoints.",
	[]string{labelJobSet, labelNamespace}, nil, metrics.ALPHA, "")

// readyRatio computes the ready share of sets when metrics are collected.
var readyRatio = newReadyShares(clock.RealClock{})

// shares is what the shares of one set follow from. Only a job that reports checkpoints has a goodput.
type shares struct {
	ready   helper.ReadyShare
	goodput helper.Goodput
	reports bool
}

// readyShares holds what the ready share follows from, for a bounded number of sets.
type readyShares struct {
	metrics.BaseStableCollector
	clock clock.PassiveClock
	// shown means that this controller leads. Others know as much, but a sum must not count sets twice.
	shown atomic.Bool

	mu     sync.Mutex
	known  map[cache.ObjectName]shares
	latest []cache.ObjectName
}

var _ metrics.StableCollector = &readyShares{}

func newReadyShares(c clock.PassiveClock) *readyShares {
	return &readyShares{clock: c, known: map[cache.ObjectName]shares{}}
}

// set records a set. One that has never run has no ready share yet.
func (r *readyShares) set(js *jobsetv1alpha2.JobSet) {
	if len(js.Status.Attempts) == 0 {
		return
	}
	name := cache.MetaObjectToName(js)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, found := r.known[name]; !found {
		r.latest = append(r.latest, name)
	}
	known := shares{ready: helper.ReadyShareOf(js)}
	known.goodput, known.reports = helper.GoodputOf(js)
	r.known[name] = known
	if len(r.latest) > children.MaxSeries {
		delete(r.known, r.latest[0])
		r.latest = r.latest[1:]
	}
}

// forget drops a set that was deleted.
func (r *readyShares) forget(js *jobsetv1alpha2.JobSet) {
	name := cache.MetaObjectToName(js)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, name)
	r.latest = slices.DeleteFunc(r.latest, func(other cache.ObjectName) bool { return other == name })
}

// DescribeWithStability implements metrics.StableCollector.
func (r *readyShares) DescribeWithStability(to chan<- *metrics.Desc) {
	to <- readyShareDesc
	to <- goodputDesc
}

// CollectWithStability implements metrics.StableCollector.
func (r *readyShares) CollectWithStability(to chan<- metrics.Metric) {
	if !r.shown.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	for _, name := range r.latest {
		known := r.known[name]
		to <- metrics.NewLazyConstMetric(readyShareDesc, metrics.GaugeValue, known.ready.Ratio(now), name.Name, name.Namespace)
		if known.reports {
			to <- metrics.NewLazyConstMetric(goodputDesc, metrics.GaugeValue, known.goodput.Ratio(now), name.Name, name.Namespace)
		}
	}
}
