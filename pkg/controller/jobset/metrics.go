// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
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

	droppedTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "jobset_dropped_status_fields_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of status writes of which jobset-apiserver did not keep a field, because a feature gate is on in jobset-controller only, by field.",
	}, []string{"field"})

	phases = newPhaseCounts()

	registerOnce sync.Once
)

func newPhaseCounts() *children.PhaseCounts {
	return children.NewPhaseCounts("jobset_jobsets",
		"Number of JobSets by phase: Terminating, Completed, Failed, Suspended, Restarting, Pending, Running or Starting.", helper.Phases)
}

func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(failedTotal.CounterVec, completedTotal.CounterVec, droppedTotal, attemptsTotal, recoverySeconds, startupSeconds)
		legacyregistry.CustomMustRegister(readyRatio, phases)
	})
}

// countFinish counts a set whose end has just been stored.
func countFinish(js *jobsetv1alpha2.JobSet) {
	switch js.Status.TerminalState {
	case jobsetv1alpha2.TerminalStateFailed:
		failedTotal.Count(cache.MetaObjectToName(js))
	case jobsetv1alpha2.TerminalStateCompleted:
		completedTotal.Count(cache.MetaObjectToName(js))
	}
}
