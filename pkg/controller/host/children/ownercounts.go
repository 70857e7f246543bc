// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
)

// ownerCounts counts the owners of one kind that the cache holds, by the values of a label, as they change: collecting the metric costs the
// same for any number of them. An owner counts for each of its values.
type ownerCounts struct {
	metrics.BaseStableCollector
	desc   *metrics.Desc
	values []string
	// shown means that this controller leads. Others know as much, but a sum must not count owners twice.
	shown atomic.Bool

	mu sync.Mutex
	// owners has a bit for each value of an owner. Owners without any are not in it.
	owners map[cache.ObjectName]uint64
	counts []int
}

// newOwnerCounts returns a metric of a name whose label has one of the values, at most 64.
func newOwnerCounts(name, help, label string, values []string) *ownerCounts {
	return &ownerCounts{
		desc: metrics.NewDesc(name, help, []string{label}, nil, metrics.ALPHA, ""), values: values,
		owners: map[cache.ObjectName]uint64{}, counts: make([]int, len(values)),
	}
}

// Show shows the metric from now on.
func (c *ownerCounts) Show() { c.shown.Store(true) }

// set counts an owner for its values. One without any is not counted.
func (c *ownerCounts) set(name cache.ObjectName, has func(value string) bool) {
	var now uint64
	for i, value := range c.values {
		if has(value) {
			now |= 1 << i
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.owners[name]
	if now == before {
		return
	}
	for i := range c.values {
		c.counts[i] += int(now>>i&1) - int(before>>i&1)
	}
	if now == 0 {
		delete(c.owners, name)
		return
	}
	c.owners[name] = now
}

// DescribeWithStability implements metrics.StableCollector.
func (c *ownerCounts) DescribeWithStability(to chan<- *metrics.Desc) { to <- c.desc }

// CollectWithStability implements metrics.StableCollector.
func (c *ownerCounts) CollectWithStability(to chan<- metrics.Metric) {
	if !c.shown.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, value := range c.values {
		to <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(c.counts[i]), value)
	}
}

// PhaseCounts counts owners by phase.
type PhaseCounts struct{ *ownerCounts }

// ConditionCounts counts owners by the conditions that are true.
type ConditionCounts struct{ *ownerCounts }

var (
	_ metrics.StableCollector = &PhaseCounts{}
	_ metrics.StableCollector = &ConditionCounts{}
)

// NewPhaseCounts returns a metric of a name with the label phase, which has one of the values.
func NewPhaseCounts(name, help string, phases []string) *PhaseCounts {
	return &PhaseCounts{newOwnerCounts(name, help, "phase", phases)}
}

// Set counts an owner in the phase that it is in.
func (p *PhaseCounts) Set(name cache.ObjectName, phase string) {
	p.set(name, func(value string) bool { return value == phase })
}

// Forget drops an owner that was deleted.
func (p *PhaseCounts) Forget(name cache.ObjectName) { p.set(name, func(string) bool { return false }) }

// Of returns the phase in which an owner is counted; empty for none.
func (p *PhaseCounts) Of(name cache.ObjectName) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if phase := p.owners[name]; phase != 0 {
		return p.values[bits.TrailingZeros64(phase)]
	}
	return ""
}

// NewConditionCounts returns a metric of a name that counts objects of a kind, in the plural. Its label condition has one of the types of
// conditions.
func NewConditionCounts(name, kind string, conditions []string) *ConditionCounts {
	last := len(conditions) - 1
	help := "Number of " + kind + " by condition that is true: " + strings.Join(conditions[:last], ", ") + " or " + conditions[last] + "."
	return &ConditionCounts{newOwnerCounts(name, help, "condition", conditions)}
}

// Set counts an owner with its conditions. One that is deleted has none.
func (c *ConditionCounts) Set(name cache.ObjectName, conditions []metav1.Condition) {
	c.set(name, func(value string) bool { return meta.IsStatusConditionTrue(conditions, value) })
}
