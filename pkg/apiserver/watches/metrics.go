// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Why a watch was ended or refused.
const (
	reasonUser  = "user"
	reasonTotal = "total"
	reasonTime  = "time"
)

var (
	ended = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "jobset_apiserver_watches_ended_total", StabilityLevel: metrics.ALPHA,
		Help: "Watches that were ended because their clients do not read, by reason: the bytes that wait of one user, the bytes of all users " +
			"in total, or the time of one event.",
	}, []string{"reason"})
	refused = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "jobset_apiserver_watches_refused_total", StabilityLevel: metrics.ALPHA,
		Help: "Watches that were refused because there are too many, by reason: those of one user, or those of all users in total.",
	}, []string{"reason"})
	waitingBytes = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "jobset_apiserver_watch_waiting_bytes", StabilityLevel: metrics.ALPHA,
		Help: "Bytes of events that are being sent to watches and were not taken by their clients yet.",
	})
	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(ended, refused, waitingBytes)
		for _, reason := range []string{reasonUser, reasonTotal, reasonTime} {
			ended.WithLabelValues(reason)
		}
		for _, reason := range []string{reasonUser, reasonTotal} {
			refused.WithLabelValues(reason)
		}
	})
}
