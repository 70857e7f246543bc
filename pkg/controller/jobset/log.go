// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"time"

	"k8s.io/klog/v2"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// logTransitions logs the starts, restarts and the end of a set, one line each, as the watch shows them. A set that the watch
// shows again, because a server was restarted, has not changed.
func logTransitions(logger klog.Logger, was, is *jobsetv1alpha2.JobSet) {
	for i := range is.Status.Attempts {
		if a := &is.Status.Attempts[i]; a.Number > lastNumber(&was.Status) {
			logAttempt(logger, is, a)
		}
	}
	before, _ := helper.Finished(was)
	phase, c := helper.Finished(is)
	if phase == before || phase == "" {
		return
	}
	line := []any{Name, klog.KObj(is)}
	if a := helper.CurrentAttempt(&is.Status); a != nil {
		line = append(line, "attempt", a.Number)
	}
	if c != nil {
		line = append(line, "reason", c.Reason, "message", c.Message)
		if !is.CreationTimestamp.IsZero() {
			line = append(line, "duration", c.LastTransitionTime.Sub(is.CreationTimestamp.Time).Round(time.Second))
		}
	}
	if phase == helper.PhaseFailed {
		logger.Info("JobSet failed", line...)
		return
	}
	logger.Info("JobSet completed", line...)
}

// logAttempt logs the beginning of an attempt, and how long the one before it took.
func logAttempt(logger klog.Logger, js *jobsetv1alpha2.JobSet, a *jobsetv1alpha2.Attempt) {
	line := []any{Name, klog.KObj(js), "attempt", a.Number, "trigger", a.Trigger}
	for _, field := range []struct{ key, value string }{{"replicatedJob", a.ReplicatedJob}, {"rule", a.Rule}, {"user", a.User},
		{"reason", a.Reason}} {
		if field.value != "" {
			line = append(line, field.key, field.value)
		}
	}
	if last := attemptNumbered(&js.Status, a.Number-1); last != nil && last.RequestTime != nil && last.EndTime != nil {
		line = append(line, "duration", last.EndTime.Sub(last.RequestTime.Time).Round(time.Second))
	}
	if plan.Recreates(a.Trigger) {
		logger.Info("JobSet restarted", line...)
		return
	}
	logger.Info("JobSet started", line...)
}
