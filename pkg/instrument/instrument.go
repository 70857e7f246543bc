// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instrument makes the metrics of server and controller. All of them are alpha: a release may change them.
package instrument

import "k8s.io/component-base/metrics"

// Counter returns a counter.
func Counter(name, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

// CounterVec returns counters by labels.
func CounterVec(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels)
}

// Gauge returns a gauge.
func Gauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

// GaugeVec returns gauges by labels.
func GaugeVec(name, help string, labels ...string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels)
}

// Histogram returns a histogram.
func Histogram(name, help string, buckets []float64) *metrics.Histogram {
	return metrics.NewHistogram(&metrics.HistogramOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA, Buckets: buckets})
}

// HistogramVec returns histograms by labels.
func HistogramVec(name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA, Buckets: buckets}, labels)
}
