// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// Results of reads.
const (
	resultOK    = "ok"
	resultError = "error"
)

const subsystem = "jobset_apiserver_store"

var (
	checks = instrument.CounterVec(subsystem+"_checks_total",
		"Reads of the key of the witness while the server serves, by result: ok, or error if etcd did not answer.", "result")
	seconds = instrument.Histogram(subsystem+"_check_duration_seconds",
		"Duration of reads of the key of the witness while the server serves.",
		[]float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 10})
	refused = instrument.GaugeVec(subsystem+"_refused",
		"1 for the reason why the server does not serve its store; 0 for all others.", "reason")
)

var reasons = []witness.Reason{
	witness.ReasonEmptyStore, witness.ReasonForeignStore, witness.ReasonOtherCluster, witness.ReasonRolledBack, witness.ReasonUnknownOwners,
	witness.ReasonCustomResources, witness.ReasonNewerFormat, witness.ReasonNotChecked,
}

var registerOnce sync.Once

// registerMetrics makes the metrics visible, with a value for each reason.
func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(checks, seconds, refused)
		for _, result := range []string{resultOK, resultError} {
			checks.WithLabelValues(result)
		}
	})
}

func observe(err error, took time.Duration) {
	result := resultOK
	if err != nil {
		result = resultError
	}
	checks.WithLabelValues(result).Inc()
	seconds.Observe(took.Seconds())
}

// show publishes why the server does not serve; the reason is empty if it does.
func show(reason witness.Reason) {
	for _, other := range reasons {
		value := 0.0
		if other == reason {
			value = 1
		}
		refused.WithLabelValues(string(other)).Set(value)
	}
}
