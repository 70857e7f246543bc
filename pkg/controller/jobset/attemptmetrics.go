// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

// Attempts are measured as the watch shows them, because both programs write them: what users ask for is recorded by the
// API server.

const labelTrigger = "trigger"

// waits are the buckets for the time until all Jobs are ready: pods may have to be scheduled, and images to be pulled.
var waits = []float64{.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400}

// triggers are all triggers of attempts.
var triggers = []jobsetv1alpha2.AttemptTrigger{
	jobsetv1alpha2.TriggerStart, jobsetv1alpha2.TriggerFailurePolicy, jobsetv1alpha2.TriggerRequested, jobsetv1alpha2.TriggerResume,
	jobsetv1alpha2.TriggerPreemption, jobsetv1alpha2.TriggerRetry,
}

var (
	attemptsTotal   = instrument.CounterVec("jobset_attempts_total", "Number of attempts of JobSets that began, by trigger.", labelTrigger)
	recoverySeconds = instrument.HistogramVec("jobset_recovery_seconds",
		"Time from the beginning of a restart, of a retry or of the admission after a preemption until all Jobs of the JobSet were "+
			"ready, by trigger.", waits, labelTrigger)
	startupSeconds = instrument.Histogram("jobset_startup_seconds",
		"Time from the creation of a JobSet until all of its Jobs were ready for the first time, the time in queues included.", waits)
)

// measure returns handlers that keep the metrics current. Only the controller that leads counts.
func (c *Controller) measure() cache.ResourceEventHandlerFuncs {
	return loop.Changes[*jobsetv1alpha2.JobSet]{
		Shown: func(js *jobsetv1alpha2.JobSet) {
			readyRatio.set(js)
			countPhase(js)
		},
		Changed: func(was, is *jobsetv1alpha2.JobSet) {
			if c.leads.Load() {
				countAttempts(was, is)
				countCauses(&was.Status, &is.Status)
				observeWait(&was.Status, &is.Status)
				logTransitions(c.logger, was, is)
			}
		},
		Gone: func(js *jobsetv1alpha2.JobSet) {
			readyRatio.forget(js)
			phases.Forget(cache.MetaObjectToName(js))
			countConditions(js, true)
		},
	}.Handlers()
}

func countAttempts(was, is *jobsetv1alpha2.JobSet) {
	for i := range is.Status.Attempts {
		a := &is.Status.Attempts[i]
		old := attemptNumbered(&was.Status, a.Number)
		switch {
		case old == nil && a.Number > lastNumber(&was.Status):
			attemptsTotal.WithLabelValues(string(a.Trigger)).Inc()
		case old != nil && old.ReadyTime == nil && a.ReadyTime != nil:
			observeReady(was, is, a)
		}
	}
	if cancelled(is) && !cancelled(was) {
		countFailed(is)
	}
}

// observeReady observes an attempt all of whose Jobs have just become ready.
func observeReady(was, is *jobsetv1alpha2.JobSet, a *jobsetv1alpha2.Attempt) {
	if recovers(a.Trigger) && a.RequestTime != nil {
		recoverySeconds.WithLabelValues(string(a.Trigger)).Observe(a.ReadyTime.Sub(a.RequestTime.Time).Seconds())
	}
	if is.Status.Attempts[0].Number == 1 && !everReady(&was.Status) {
		startupSeconds.Observe(max(0, a.ReadyTime.Sub(is.CreationTimestamp.Time).Seconds()))
	}
}

// recovers returns whether attempts of the trigger make up for work that was interrupted.
func recovers(trigger jobsetv1alpha2.AttemptTrigger) bool {
	switch trigger {
	case jobsetv1alpha2.TriggerFailurePolicy, jobsetv1alpha2.TriggerRequested, jobsetv1alpha2.TriggerRetry, jobsetv1alpha2.TriggerPreemption:
		return true
	}
	return false
}

func everReady(status *jobsetv1alpha2.JobSetStatus) bool {
	for i := range status.Attempts {
		if status.Attempts[i].ReadyTime != nil {
			return true
		}
	}
	return status.ReadyMilliseconds > 0
}

func attemptNumbered(status *jobsetv1alpha2.JobSetStatus, number int32) *jobsetv1alpha2.Attempt {
	for i := range status.Attempts {
		if status.Attempts[i].Number == number {
			return &status.Attempts[i]
		}
	}
	return nil
}

func lastNumber(status *jobsetv1alpha2.JobSetStatus) int32 {
	if n := len(status.Attempts); n > 0 {
		return status.Attempts[n-1].Number
	}
	return 0
}

// cancelled reports whether a user ended the set. The controller counts the sets that it ends itself when it does.
func cancelled(js *jobsetv1alpha2.JobSet) bool {
	c := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetFailed)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == jobsetv1alpha2.ReasonCancelled
}

func countPhase(js *jobsetv1alpha2.JobSet) {
	phases.Set(cache.MetaObjectToName(js), helper.Phase(js))
	finished, _ := helper.Finished(js)
	countConditions(js, finished != "")
}
