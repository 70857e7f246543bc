// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

const (
	labelJobSet    = "jobset_name"
	labelNamespace = "namespace"
)

var (
	failedTotal = children.NewOwnerCounter("jobset_failed_total",
		"Number of JobSets that failed, by name and namespace. Holds the latest 2000 names.", labelJobSet)
	completedTotal = children.NewOwnerCounter("jobset_completed_total",
		"Number of JobSets that completed, by name and namespace. Holds the latest 2000 names.", labelJobSet)

	finishedTotal = instrument.CounterVec("jobset_jobsets_finished_total",
		"Number of JobSets that finished, by result: Completed or Failed. Those that users cancelled failed.", "result")

	droppedTotal = instrument.CounterVec("jobset_dropped_status_fields_total",
		"Number of status writes of which jobset-apiserver did not keep a field, because a feature gate is on in jobset-controller "+
			"only, by field.", "field")

	phases = newPhaseCounts()
)

func newPhaseCounts() *children.PhaseCounts {
	return children.NewPhaseCounts("jobset_jobsets",
		"Number of JobSets by phase: Terminating, Completed, Failed, Suspended, Restarting, Pending, Running, Starting or Unreadable.",
		append(slices.Clone(helper.Phases), helper.PhaseUnreadable))
}

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(failedTotal.CounterVec, completedTotal.CounterVec, finishedTotal, droppedTotal, attemptsTotal,
		recoverySeconds,
		startupSeconds, firstFailuresTotal, placementWaitSeconds)
	legacyregistry.CustomMustRegister(readyRatio, phases, conditions)
	initMetrics()
})

// initMetrics shows the series with few labels from the beginning, so that a rate is not lost with the first event.
func initMetrics() {
	for _, result := range []string{jobsetv1alpha2.TerminalStateCompleted, jobsetv1alpha2.TerminalStateFailed} {
		finishedTotal.WithLabelValues(result)
	}
	for field := range consequences {
		droppedTotal.WithLabelValues(string(field))
	}
	for _, trigger := range triggers {
		attemptsTotal.WithLabelValues(string(trigger))
		if recovers(trigger) {
			recoverySeconds.WithLabelValues(string(trigger))
		}
	}
	for _, cause := range causes {
		firstFailuresTotal.WithLabelValues(cause)
	}
}

// countFinish counts a set whose end has just been stored.
func countFinish(js *jobsetv1alpha2.JobSet) {
	switch js.Status.TerminalState {
	case jobsetv1alpha2.TerminalStateFailed:
		countFailed(js)
	case jobsetv1alpha2.TerminalStateCompleted:
		completedTotal.Count(cache.MetaObjectToName(js))
		finishedTotal.WithLabelValues(jobsetv1alpha2.TerminalStateCompleted).Inc()
	}
}

func countFailed(js *jobsetv1alpha2.JobSet) {
	failedTotal.Count(cache.MetaObjectToName(js))
	finishedTotal.WithLabelValues(jobsetv1alpha2.TerminalStateFailed).Inc()
}
