// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

var phasesDesc = metrics.NewDesc("jobset_jobsets",
	"Number of JobSets by phase: Terminating, Completed, Failed, Suspended, Restarting, Pending, Running or Starting.",
	[]string{"phase"}, nil, metrics.ALPHA, "")

// phases counts the sets that the cache holds.
var phases = newPhaseCounts()

// phaseCounts counts sets by phase as they change, so that collecting the metric costs the same for any number of sets.
type phaseCounts struct {
	metrics.BaseStableCollector
	// shown means that this controller leads. Others know as much, but a sum must not count sets twice.
	shown atomic.Bool

	mu     sync.Mutex
	sets   map[cache.ObjectName]string
	counts map[string]int
}

var _ metrics.StableCollector = &phaseCounts{}

func newPhaseCounts() *phaseCounts {
	return &phaseCounts{sets: map[cache.ObjectName]string{}, counts: map[string]int{}}
}

// set counts a set in the phase that it is in.
func (p *phaseCounts) set(js *jobsetv1alpha2.JobSet) {
	name, phase := cache.MetaObjectToName(js), helper.Phase(js)
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, found := p.sets[name]; found {
		p.counts[before]--
	}
	p.sets[name] = phase
	p.counts[phase]++
}

// forget drops a set that was deleted.
func (p *phaseCounts) forget(js *jobsetv1alpha2.JobSet) {
	name := cache.MetaObjectToName(js)
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, found := p.sets[name]; found {
		p.counts[before]--
		delete(p.sets, name)
	}
}

// DescribeWithStability implements metrics.StableCollector.
func (p *phaseCounts) DescribeWithStability(to chan<- *metrics.Desc) { to <- phasesDesc }

// CollectWithStability implements metrics.StableCollector.
func (p *phaseCounts) CollectWithStability(to chan<- metrics.Metric) {
	if !p.shown.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, phase := range helper.Phases {
		to <- metrics.NewLazyConstMetric(phasesDesc, metrics.GaugeValue, float64(p.counts[phase]), phase)
	}
}
