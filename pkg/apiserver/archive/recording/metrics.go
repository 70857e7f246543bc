// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"sync"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

const subsystem = "jobset_apiserver_archive"

// Results of attempts to record a run.
const (
	resultStored = "stored"
	// resultRefused is counted when the archive answers but does not take the run. It is tried again later.
	resultRefused = "refused"
	// resultSetAside is counted for an entry of the outbox that cannot be read or stored. It is kept, and tried again later.
	resultSetAside = "set-aside"
	// resultDropped is counted for an entry of the outbox whose object was not removed.
	resultDropped = "dropped"
)

// Reasons why a run is lost.
const (
	// lostOutboxFull and lostOutboxFailed are counted for a run whose object is removed without an entry.
	lostOutboxFull   = "outbox-full"
	lostOutboxFailed = "outbox-failed"
	// lostDescribe is counted when the code of a kind panics.
	lostDescribe = "describe-failed"
)

var (
	recordedTotal = instrument.CounterVec(subsystem+"_recorded_total",
		"Attempts to record runs, by result: stored; refused if the archive answers but does not take the run, which is tried again; "+
			"set-aside if an entry of the outbox cannot be read or stored; dropped if the object of an entry was not removed.", "result")
	lostTotal = instrument.CounterVec(subsystem+"_lost_total",
		"Runs that may be missing in the archive, by reason: outbox-full, outbox-failed if etcd did not take an entry in time, "+
			"describe-failed if the run of an object could not be determined.", "reason")
)

var registerOnce sync.Once

// registerMetrics makes the metrics visible, with a value for each result and reason.
func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(recordedTotal, lostTotal)
		for _, result := range []string{resultStored, resultRefused, resultSetAside, resultDropped} {
			recordedTotal.WithLabelValues(result)
		}
		for _, reason := range []string{lostOutboxFull, lostOutboxFailed, lostDescribe} {
			lostTotal.WithLabelValues(reason)
		}
	})
}
