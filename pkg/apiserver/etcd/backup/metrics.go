// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "jobset_apiserver_backup"

var (
	lastSuccess = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "last_success_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "When the newest backup of the store was begun, in seconds since 1970; 0 if there is none. Only with --backup-dir.",
	})
	lastBytes = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "last_size_bytes", StabilityLevel: metrics.ALPHA,
		Help: "Size of the last backup of this process.",
	})
	failures = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Backups of the store that failed.",
	})
	// register makes the metrics visible: where nothing is backed up, a time of 0 would be an alarm.
	register = sync.OnceFunc(func() { legacyregistry.MustRegister(lastSuccess, lastBytes, failures) })
)

// observe records the newest backup, and its size if it is not negative.
func observe(at time.Time, bytes int64) {
	lastSuccess.Set(float64(at.Unix()))
	if bytes >= 0 {
		lastBytes.Set(float64(bytes))
	}
}
