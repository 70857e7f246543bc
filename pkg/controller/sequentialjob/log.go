// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"time"

	"k8s.io/klog/v2"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

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
