// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
)

// A request that names an attempt may be repeated: the repetition changes nothing and gets the first response, but only
// while what was requested is still so. Otherwise it is a Conflict that says what happened since. What was requested is
// known from status.lastAction, so that only the last action can be repeated; for others the attempt is out of date.
//
// One that does not name the step is meant for the step that is current.

// begunBefore returns the response to the request that restarted or retried the attempt that this one names; nil if none did.
func begunBefore(sj *batch.SequentialJob, p *batch.SequentialJobPreconditions, asked batch.SequentialJobAction,
	call Call) (*batch.SequentialJobActionStatus, error) {
	last := sj.Status.LastAction
	if last == nil || last.Action != asked || p == nil || p.Attempt == nil || cmp.Or(p.Step, currentOf(sj).name) != last.Step &&
		last.Step != "" {
		return nil, nil
	}
	unstarted := asked == batch.ActionRetry && last.Attempt == 0 && *p.Attempt == 0
	if *p.Attempt != last.Attempt-1 && !unstarted {
		return nil, nil
	}
	return stillSo(sj, call)
}

// stillSo returns the response to the last action, a restart or a retry, if the step is still at the attempt that it began and no user has
// stopped it since.
func stillSo(sj *batch.SequentialJob, call Call) (*batch.SequentialJobActionStatus, error) {
	last, c := sj.Status.LastAction, finished(sj)
	stopped := last.Action == batch.ActionRestart && suspended(sj) || c != nil && c.Reason == batchv1alpha1.ReasonCancelled
	if stopped || attemptOf(sj, last.Step) > max(last.Attempt, 1) {
		return nil, lapsed(sj, call)
	}
	return recorded(sj), nil
}

// attemptOf is the number of the current attempt of a step that was started.
func attemptOf(sj *batch.SequentialJob, name string) int32 {
	for i := range sj.Status.Steps {
		if sj.Status.Steps[i].Name == name {
			return sj.Status.Steps[i].Attempts
		}
	}
	return 0
}

// namesLast returns whether a request names the step and the attempt on which the last action, if it is this one, took effect.
func namesLast(sj *batch.SequentialJob, p *batch.SequentialJobPreconditions, asked batch.SequentialJobAction) bool {
	last := sj.Status.LastAction
	return last != nil && last.Action == asked && p != nil && p.Attempt != nil && *p.Attempt == last.Attempt &&
		(p.Step == "" || p.Step == last.Step)
}

// lapsed is the error for the repetition of a request that took effect, after which something else happened.
func lapsed(sj *batch.SequentialJob, call Call) error {
	last := sj.Status.LastAction
	return conflict(sj, "step %q was %s%s by %s; %s", last.Step, past[last.Action], call.ago(last.Time), last.User, present(sj))
}

// ago says how long ago something happened, after a space; nothing if that is not known.
func (c Call) ago(when *metav1.MicroTime) string { return action.Ago(when, c.Now) }

// present says how a sequence is now.
func present(sj *batch.SequentialJob) string {
	at := currentOf(sj)
	switch c := finished(sj); {
	case c != nil && c.Type == batchv1alpha1.ConditionComplete:
		return "the SequentialJob has completed"
	case c != nil && c.Reason == batchv1alpha1.ReasonCancelled:
		return "the SequentialJob was cancelled"
	case c != nil:
		return fmt.Sprintf("the SequentialJob has failed (%s)", c.Reason)
	case suspended(sj):
		return "the SequentialJob is suspended"
	case !at.started():
		return fmt.Sprintf("step %q is about to start", at.name)
	}
	return fmt.Sprintf("attempt %d of step %q is running", at.attempt(), at.name)
}
