// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
)

// ConditionCounts counts the owners of one kind that the cache holds, by the conditions that are true, as they change:
// collecting the metric costs the same for any number of them. An owner counts for each of its conditions.
type ConditionCounts struct {
	metrics.BaseStableCollector
	desc       *metrics.Desc
	conditions []string
	// shown means that this controller leads. Others know as much, but a sum must not count owners twice.
	shown atomic.Bool

	mu sync.Mutex
	// owners has a bit for each condition that is true. Owners without any are not in it.
	owners map[cache.ObjectName]uint64
	counts []int
}

var _ metrics.StableCollector = &ConditionCounts{}

// NewConditionCounts returns a metric of a name that counts objects of a kind, in the plural. Its label condition has one of the types of
// conditions, at most 64.
func NewConditionCounts(name, kind string, conditions []string) *ConditionCounts {
	last := len(conditions) - 1
	help := "Number of " + kind + " by condition that is true: " + strings.Join(conditions[:last], ", ") + " or " + conditions[last] + "."
	return &ConditionCounts{
		desc: metrics.NewDesc(name, help, []string{"condition"}, nil, metrics.ALPHA, ""), conditions: conditions,
		owners: map[cache.ObjectName]uint64{}, counts: make([]int, len(conditions)),
	}
}

// Show shows the metric from now on.
func (c *ConditionCounts) Show() { c.shown.Store(true) }

// Set counts an owner with its conditions. One that is deleted has none.
func (c *ConditionCounts) Set(name cache.ObjectName, conditions []metav1.Condition) {
	var bits uint64
	for i, condition := range c.conditions {
		if meta.IsStatusConditionTrue(conditions, condition) {
			bits |= 1 << i
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.owners[name]
	if bits == before {
		return
	}
	for i := range c.conditions {
		c.counts[i] += int(bits>>i&1) - int(before>>i&1)
	}
	if bits == 0 {
		delete(c.owners, name)
		return
	}
	c.owners[name] = bits
}

// DescribeWithStability implements metrics.StableCollector.
func (c *ConditionCounts) DescribeWithStability(to chan<- *metrics.Desc) { to <- c.desc }

// CollectWithStability implements metrics.StableCollector.
func (c *ConditionCounts) CollectWithStability(to chan<- metrics.Metric) {
	if !c.shown.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, condition := range c.conditions {
		to <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(c.counts[i]), condition)
	}
}
