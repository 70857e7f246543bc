// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	// Metrics of the work queues.
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

// The names are those under which dashboards of upstream's controller look; the label is the name of the queue.
var (
	syncs = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "controller_runtime_reconcile_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of syncs by controller and result (success, requeue_after, error).",
	}, []string{"controller", "result"})
	syncErrors = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "controller_runtime_reconcile_errors_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of syncs by controller that ended with an error.",
	}, []string{"controller"})
	syncSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name: "controller_runtime_reconcile_time_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Duration of syncs by controller.",
		Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"controller"})

	registerOnce sync.Once
)

// RegisterMetrics makes the metrics of this package known. It may be called more than once.
func RegisterMetrics() {
	registerOnce.Do(func() { legacyregistry.MustRegister(syncs, syncErrors, syncSeconds) })
}

func observeSync(controller string, took, requeueAfter time.Duration, err error) {
	syncSeconds.WithLabelValues(controller).Observe(took.Seconds())
	result := "success"
	switch {
	case err != nil:
		result = "error"
		syncErrors.WithLabelValues(controller).Inc()
	case requeueAfter > 0:
		result = "requeue_after"
	}
	syncs.WithLabelValues(controller, result).Inc()
}
