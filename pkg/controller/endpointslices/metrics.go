// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
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
	writesTotal = instrument.CounterVec("jobset_endpoints_writes_total",
		"Number of writes for the addresses of Services of JobSets: create, update and delete are about EndpointSlices, take and leave "+
			"about selectors of Services, and failed about any.", "operation")

	delaySeconds = instrument.Histogram("jobset_endpoints_delay_seconds",
		"Time from the first change of a pod that the EndpointSlices of its JobSet must show until they were written.",
		metrics.ExponentialBuckets(0.05, 2, 10))

	canaryResolves = instrument.Gauge("jobset_endpoints_canary_resolves",
		"1 if the cluster resolved the name of the canary record when it was last looked up, else 0.")
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
