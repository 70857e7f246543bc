// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

// result is what became of a request.
type result string

const (
	resultMutated   result = "mutated"
	resultUnchanged result = "unchanged"
	resultRefused   result = "refused"
	resultBad       result = "bad_request"
	resultBusy      result = "busy"
	resultPanic     result = "panic"
	// resultUnauthenticated is a caller without the certificate that is required.
	resultUnauthenticated result = "unauthenticated"
)

var results = []result{resultMutated, resultUnchanged, resultRefused, resultBad, resultBusy, resultPanic, resultUnauthenticated}

const subsystem = "jobset_apiserver_pod_webhook"

var (
	requests = instrument.CounterVec(subsystem+"_requests_total",
		"Requests to the webhook for pods of LeaderWorkerSets, by result: mutated, unchanged, refused, bad_request, busy (too many at "+
			"the same time), panic or unauthenticated.", "result")
	seconds = instrument.Histogram(subsystem+"_request_duration_seconds",
		"Duration of requests to the webhook for pods of LeaderWorkerSets, with the time that the client took to send them.",
		[]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 10})
)

var registerOnce sync.Once

// registerMetrics makes the metrics visible, with a value for each result.
func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(requests, seconds)
		for _, r := range results {
			requests.WithLabelValues(string(r)).Add(0)
		}
	})
}

func observe(r result, took time.Duration) {
	requests.WithLabelValues(string(r)).Inc()
	seconds.Observe(took.Seconds())
}
