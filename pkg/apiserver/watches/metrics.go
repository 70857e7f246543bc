// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Why a watch was ended.
const (
	reasonUser  = "user"
	reasonTotal = "total"
	reasonTime  = "time"
)

var (
	ended = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "jobset_apiserver_watches_ended_total", StabilityLevel: metrics.ALPHA,
		Help: "Watches that were ended because their clients do not read, by reason: the bytes that wait of one user, the bytes of all users in total, or the time of one event.",
	}, []string{"reason"})
	waitingBytes = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "jobset_apiserver_watch_waiting_bytes", StabilityLevel: metrics.ALPHA,
		Help: "Bytes of events that are being sent to watches and were not taken by their clients yet.",
	})
	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(ended, waitingBytes)
		for _, reason := range []string{reasonUser, reasonTotal, reasonTime} {
			ended.WithLabelValues(reason)
		}
	})
}
