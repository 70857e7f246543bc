// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
)

// Restart runs the current step again, as its next attempt.
func Restart(sj *batch.SequentialJob, spec *batch.SequentialJobActionSpec, call Call) (*batch.SequentialJobActionStatus, error) {
	if err := checkMeant(sj, spec.Preconditions); err != nil {
		return nil, err
	}
	if answer, err := begunBefore(sj, spec.Preconditions, batch.ActionRestart, call); err != nil || answer != nil {
		return answer, err
	}
	if err := checkStep(sj, spec.Preconditions); err != nil {
		return nil, err
	}
	if err := checkUnfinished(sj, "restart"); err != nil {
		return nil, err
	}
	at := currentOf(sj)
	switch {
	case held(sj):
		return nil, conflict(sj, "the SequentialJob is held, because the store was restored from a backup; resume it instead")
	case suspended(sj):
		return nil, conflict(sj, "the SequentialJob is suspended; resume it instead")
	case !at.started():
		return nil, conflict(sj, "step %q has not started, so there is nothing to restart; it starts by itself", at.name)
	case at.step.State == batch.StepSucceeded || at.step.State == batch.StepFailed:
		return nil, conflict(sj, "step %q has ended (%s), so there is nothing to restart", at.name, at.step.State)
	case awaited(sj, at):
		return joined(sj, call), nil
	}
	RunAgain(sj, at.index, call)
	record(sj, batch.ActionRestart, spec.Reason, call)
	return recorded(sj), nil
}

// awaited returns whether the current attempt was begun by a restart, and the controller has not seen its child yet.
func awaited(sj *batch.SequentialJob, at position) bool {
	last := sj.Status.LastAction
	return last != nil && last.Action == batch.ActionRestart && last.Step == at.name && last.Attempt == at.attempt() &&
		at.step.State == batch.StepStarting && at.step.ChildUID == ""
}

// joined is the response to a request to restart what an earlier request has restarted, before that has taken effect. Several
// people who restart a step at the same time, or one who repeats the request, cause one restart.
func joined(sj *batch.SequentialJob, call Call) *batch.SequentialJobActionStatus {
	last := sj.Status.LastAction
	return nothing(sj, fmt.Sprintf("attempt %d of step %q, requested%s by %s, has not started yet; not restarted again",
		last.Attempt, last.Step, call.ago(last.Time), last.User))
}
