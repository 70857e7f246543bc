// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
)

// MaxSeries bounds the memory for the names of owners in metrics.
const MaxSeries = 2000

// OwnerCounter is a metric that counts by the name of an owner. It holds the latest MaxSeries names.
type OwnerCounter struct {
	// CounterVec is the metric.
	*metrics.CounterVec
	label string

	mu     sync.Mutex
	known  map[cache.ObjectName]bool
	latest []cache.ObjectName
}

// NewOwnerCounter returns a counter whose labels are the name, under the label given, and the namespace.
func NewOwnerCounter(name, help, label string) *OwnerCounter {
	opts := &metrics.CounterOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA}
	return &OwnerCounter{
		CounterVec: metrics.NewCounterVec(opts, []string{label, "namespace"}), label: label, known: map[cache.ObjectName]bool{},
	}
}

// Count counts one more for the owner.
func (c *OwnerCounter) Count(owner cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known[owner] {
		c.known[owner] = true
		c.latest = append(c.latest, owner)
	}
	if len(c.latest) > MaxSeries {
		oldest := c.latest[0]
		c.latest = c.latest[1:]
		delete(c.known, oldest)
		c.Delete(map[string]string{c.label: oldest.Name, "namespace": oldest.Namespace})
	}
	c.WithLabelValues(owner.Name, owner.Namespace).Inc()
}
