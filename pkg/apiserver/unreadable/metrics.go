// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	objects = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: "jobset_apiserver_store", Name: "unreadable_objects", StabilityLevel: metrics.ALPHA,
		Help: "Number of objects in the store that the server cannot decrypt or decode, by resource.",
	}, []string{"resource"})

	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() { legacyregistry.MustRegister(objects) })
}

func show(resource schema.GroupResource, count int) {
	objects.WithLabelValues(resource.String()).Set(float64(count))
}
