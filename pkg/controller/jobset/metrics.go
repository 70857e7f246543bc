// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// maxSeries bounds the memory for the names of finished sets: the series of those that finished longest ago go first.
const maxSeries = 2000

const (
	labelJobSet    = "jobset_name"
	labelNamespace = "namespace"
)

var (
	failedTotal = newFinishedCounter("jobset_failed_total",
		"Number of JobSets that failed, by name and namespace. Holds the latest 2000 names.")
	completedTotal = newFinishedCounter("jobset_completed_total",
		"Number of JobSets that completed, by name and namespace. Holds the latest 2000 names.")

	droppedTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "jobset_dropped_status_fields_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of status writes of which jobset-apiserver did not keep a field, because a feature gate is on in jobset-controller only, by field.",
	}, []string{"field"})

	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(failedTotal.vec, completedTotal.vec, droppedTotal, attemptsTotal, recoverySeconds, startupSeconds)
		legacyregistry.CustomMustRegister(goodput)
	})
}

// countFinish counts a set whose end has just been stored.
func countFinish(js *jobsetv1alpha2.JobSet) {
	switch js.Status.TerminalState {
	case jobsetv1alpha2.TerminalStateFailed:
		failedTotal.inc(js.Name, js.Namespace)
	case jobsetv1alpha2.TerminalStateCompleted:
		completedTotal.inc(js.Name, js.Namespace)
	}
}

// finishedCounter counts by name of a set, for a bounded number of names.
type finishedCounter struct {
	vec *metrics.CounterVec

	mu     sync.Mutex
	known  map[[2]string]bool
	latest []([2]string)
}

func newFinishedCounter(name, help string) *finishedCounter {
	opts := &metrics.CounterOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA}
	return &finishedCounter{
		vec:   metrics.NewCounterVec(opts, []string{labelJobSet, labelNamespace}),
		known: map[[2]string]bool{},
	}
}

func (c *finishedCounter) inc(name, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key := [2]string{name, namespace}; !c.known[key] {
		c.known[key] = true
		c.latest = append(c.latest, key)
	}
	if len(c.latest) > maxSeries {
		oldest := c.latest[0]
		c.latest = c.latest[1:]
		delete(c.known, oldest)
		c.vec.Delete(map[string]string{labelJobSet: oldest[0], labelNamespace: oldest[1]})
	}
	c.vec.WithLabelValues(name, namespace).Inc()
}
