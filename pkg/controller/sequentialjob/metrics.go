// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

var (
	stepsTotal = instrument.CounterVec("sequentialjob_steps_total",
		"Number of attempts of steps of SequentialJobs that ended, by result: Succeeded or Failed.", "result")

	phases = children.NewPhaseCounts("sequentialjob_sequentialjobs",
		"Number of SequentialJobs by phase: Pending, Running, Suspended, Waiting, Completed, Failed or Unreadable.", helper.Phases())
)

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(stepsTotal)
	legacyregistry.CustomMustRegister(phases)
	for _, state := range []batchv1alpha1.StepState{batchv1alpha1.StepSucceeded, batchv1alpha1.StepFailed} {
		stepsTotal.WithLabelValues(string(state))
	}
})

// countEnds counts the steps whose end has just been stored.
func countEnds(was, is *batchv1alpha1.SequentialJobStatus) {
	for i := range is.Steps {
		state := is.Steps[i].State
		ended := state == batchv1alpha1.StepSucceeded || state == batchv1alpha1.StepFailed
		if ended && (i >= len(was.Steps) || was.Steps[i].State != state || was.Steps[i].Attempts != is.Steps[i].Attempts) {
			stepsTotal.WithLabelValues(string(state)).Inc()
		}
	}
}

func countPhase(sj *batchv1alpha1.SequentialJob) {
	phases.Set(cache.MetaObjectToName(sj), string(helper.Phase(sj)))
}

// logTransitions logs the starts of steps and the end of a sequence, one line each, as the watch shows them. A sequence that
// the watch shows again, because a server was restarted, has not changed.
func logTransitions(logger klog.Logger, was, is *batchv1alpha1.SequentialJob) {
	for i := range is.Status.Steps {
		step := &is.Status.Steps[i]
		if step.State == batchv1alpha1.StepPending || i < len(was.Status.Steps) && was.Status.Steps[i].Attempts >= step.Attempts {
			continue
		}
		logger.Info("Step started", Name, klog.KObj(is), "step", step.Name, "index", i, "attempt", step.Attempts)
	}
	c := helper.Finished(is)
	if c == nil || helper.Finished(was) != nil {
		return
	}
	line := []any{Name, klog.KObj(is), "reason", c.Reason, "message", c.Message}
	if !is.CreationTimestamp.IsZero() {
		line = append(line, "duration", c.LastTransitionTime.Sub(is.CreationTimestamp.Time).Round(time.Second))
	}
	if c.Type == batchv1alpha1.ConditionFailed {
		logger.Info("SequentialJob failed", line...)
		return
	}
	logger.Info("SequentialJob completed", line...)
}
