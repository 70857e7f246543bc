// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Operations of writes.
const (
	operationCreate = "create"
	operationUpdate = "update"
	operationDelete = "delete"
	operationTake   = "take"
	operationLeave  = "leave"
	operationFailed = "failed"
)

var (
	writesTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "jobset_endpoints_writes_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of writes for the addresses of Services of JobSets: create, update and delete are about EndpointSlices, take and leave " +
			"about selectors of Services, and failed about any.",
	}, []string{"operation"})

	delaySeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "jobset_endpoints_delay_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from the first change of a pod that the EndpointSlices of its JobSet must show until they were written.",
		Buckets: metrics.ExponentialBuckets(0.05, 2, 10),
	})

	canaryResolves = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "jobset_endpoints_canary_resolves", StabilityLevel: metrics.ALPHA,
		Help: "1 if the cluster resolved the name of the canary record when it was last looked up, else 0.",
	})
)

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(writesTotal, delaySeconds, canaryResolves)
	for _, operation := range []string{operationCreate, operationUpdate, operationDelete, operationTake, operationLeave, operationFailed} {
		writesTotal.WithLabelValues(operation)
	}
})

// observeDelay measures how long the oldest change has waited.
func (c *Syncer) observeDelay(obs *observed) {
	oldest := obs.pace.added
	if o := obs.pace.outdated; oldest.IsZero() || !o.IsZero() && o.Before(oldest) {
		oldest = o
	}
	if !oldest.IsZero() {
		delaySeconds.Observe(max(c.Clock.Since(oldest), time.Duration(0)).Seconds())
	}
}
