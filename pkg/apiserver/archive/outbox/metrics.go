// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

const subsystem = "jobset_apiserver_archive_outbox"

var (
	entriesGauge = instrument.Gauge(subsystem+"_entries",
		"Runs in the outbox that the archive does not have yet, as this server counted them.")
	bytesGauge  = instrument.Gauge(subsystem+"_bytes", "Bytes of the runs in the outbox, as this server counted them.")
	oldestGauge = instrument.Gauge(subsystem+"_oldest_seconds",
		"Age of the oldest run in the outbox in seconds, when this server last tried to store it. 0 if the outbox is empty.")
)

var registerOnce sync.Once

// registerMetrics makes the metrics visible.
func registerMetrics() {
	registerOnce.Do(func() { legacyregistry.MustRegister(entriesGauge, bytesGauge, oldestGauge) })
}

// ShowOldest publishes the age of the oldest entry; 0 means that there is none.
func ShowOldest(age time.Duration) { oldestGauge.Set(max(0, age.Seconds())) }
