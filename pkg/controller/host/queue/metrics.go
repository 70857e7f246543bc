// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	// Metrics of the work queues.
	_ "k8s.io/component-base/metrics/prometheus/workqueue"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

// Results of a sync.
const (
	resultSuccess      = "success"
	resultRequeueAfter = "requeue_after"
	resultError        = "error"
)

// The names are those under which dashboards of upstream's controller look; the label is the name of the queue.
var (
	syncs = instrument.CounterVec("controller_runtime_reconcile_total",
		"Number of syncs by controller and result (success, requeue_after, error).", "controller", "result")
	syncErrors = instrument.CounterVec("controller_runtime_reconcile_errors_total",
		"Number of syncs by controller that ended with an error.", "controller")
	syncSeconds = instrument.HistogramVec("controller_runtime_reconcile_time_seconds",
		"Duration of syncs by controller.", []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, "controller")

	syncPanics = instrument.CounterVec("controller_runtime_reconcile_panics_total",
		"Number of syncs by controller that ended with a panic, which counts as an error too.", "controller")
	maxWorkers    = instrument.GaugeVec("controller_runtime_max_concurrent_reconciles", "Number of workers by controller.", "controller")
	activeWorkers = instrument.GaugeVec("controller_runtime_active_workers",
		"Number of workers by controller that sync an object at present.", "controller")

	registerOnce sync.Once
)

// RegisterMetrics makes the metrics of this package known. It may be called more than once.
func RegisterMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(syncs, syncErrors, syncSeconds, syncPanics, maxWorkers, activeWorkers)
	})
}

// initMetrics shows the series of a controller from the beginning, so that a rate is not lost with the first event.
func initMetrics(controller string) {
	for _, result := range []string{resultSuccess, resultRequeueAfter, resultError} {
		syncs.WithLabelValues(controller, result)
	}
	syncErrors.WithLabelValues(controller)
	syncSeconds.WithLabelValues(controller)
	syncPanics.WithLabelValues(controller)
	maxWorkers.WithLabelValues(controller)
	activeWorkers.WithLabelValues(controller)
}

func observeSync(controller string, took time.Duration, again bool, err error) {
	syncSeconds.WithLabelValues(controller).Observe(took.Seconds())
	result := resultSuccess
	switch {
	case err != nil:
		result = resultError
		syncErrors.WithLabelValues(controller).Inc()
	case again:
		result = resultRequeueAfter
	}
	syncs.WithLabelValues(controller, result).Inc()
}
