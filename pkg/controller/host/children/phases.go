// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
)

// PhaseCounts counts the owners of one kind that the cache holds, by phase, as they change: collecting the metric costs the same
// for any number of them.
type PhaseCounts struct {
	metrics.BaseStableCollector
	desc   *metrics.Desc
	phases []string
	// shown means that this controller leads. Others know as much, but a sum must not count owners twice.
	shown atomic.Bool

	mu     sync.Mutex
	owners map[cache.ObjectName]string
	counts map[string]int
}

var _ metrics.StableCollector = &PhaseCounts{}

// NewPhaseCounts returns a metric of a name with the label phase, which has one of the values.
func NewPhaseCounts(name, help string, phases []string) *PhaseCounts {
	return &PhaseCounts{
		desc: metrics.NewDesc(name, help, []string{"phase"}, nil, metrics.ALPHA, ""), phases: phases,
		owners: map[cache.ObjectName]string{}, counts: map[string]int{},
	}
}

// Show shows the metric from now on.
func (p *PhaseCounts) Show() { p.shown.Store(true) }

// Set counts an owner in the phase that it is in.
func (p *PhaseCounts) Set(name cache.ObjectName, phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, found := p.owners[name]; found {
		p.counts[before]--
	}
	p.owners[name] = phase
	p.counts[phase]++
}

// Forget drops an owner that was deleted.
func (p *PhaseCounts) Forget(name cache.ObjectName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, found := p.owners[name]; found {
		p.counts[before]--
		delete(p.owners, name)
	}
}

// Of returns the phase in which an owner is counted; empty for none.
func (p *PhaseCounts) Of(name cache.ObjectName) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owners[name]
}

// DescribeWithStability implements metrics.StableCollector.
func (p *PhaseCounts) DescribeWithStability(to chan<- *metrics.Desc) { to <- p.desc }

// CollectWithStability implements metrics.StableCollector.
func (p *PhaseCounts) CollectWithStability(to chan<- metrics.Metric) {
	if !p.shown.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, phase := range p.phases {
		to <- metrics.NewLazyConstMetric(p.desc, metrics.GaugeValue, float64(p.counts[phase]), phase)
	}
}
