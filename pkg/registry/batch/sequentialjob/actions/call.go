// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// maxUserBytes is the longest name of a user in the status.
const maxUserBytes = 256

// Call is who asks, and when.
type Call struct {
	// User is the name of who asks.
	User string
	// Now is the time of the request.
	Now time.Time
}

// user is bounded, as the status is.
func (c Call) user() string { return text.Truncate(text.Line(c.User), maxUserBytes) }

// second is the time in the precision of all times of the status but that of the last action.
func (c Call) second() metav1.Time { return metav1.NewTime(c.Now.Truncate(time.Second)) }

// signed says who asked for something and why, for messages of conditions.
func (c Call) signed(what, reason string) string { return helper.RequestedBy(what, c.user(), reason) }

// record makes an action the last one, on the current step.
func record(sj *batch.SequentialJob, action batch.SequentialJobAction, reason string, call Call) {
	at := currentOf(sj)
	sj.Status.LastAction = &batch.SequentialJobLastAction{
		Action: action, User: call.user(), Reason: reason, Step: at.name, Attempt: at.attempt(),
		Time: &metav1.MicroTime{Time: call.Now.Truncate(time.Microsecond)}, // what is stored equals what the first response says
	}
	if len(sj.Status.Steps) == 0 {
		sj.Status.LastAction.Step = ""
	}
}

// recorded is the response to the request that became the last action.
func recorded(sj *batch.SequentialJob) *batch.SequentialJobActionStatus {
	last := sj.Status.LastAction
	return &batch.SequentialJobActionStatus{
		UID: sj.UID, Step: last.Step, Attempt: last.Attempt, User: last.User, Time: last.Time.DeepCopy(), Message: describe(sj),
	}
}

// describe says what the last action did.
func describe(sj *batch.SequentialJob) string {
	last := sj.Status.LastAction
	switch last.Action {
	case batch.ActionRestart:
		return fmt.Sprintf("step %q was restarted as attempt %d", last.Step, last.Attempt)
	case batch.ActionRetry:
		return describeRetry(sj)
	}
	return fmt.Sprintf("the SequentialJob was %s %s", past[last.Action], where(last))
}

// past is what a sequence was after an action.
var past = map[batch.SequentialJobAction]string{
	batch.ActionRestart: "restarted", batch.ActionRetry: "retried", batch.ActionSuspend: "suspended",
	batch.ActionResume: "resumed", batch.ActionCancel: cancelled,
}

func describeRetry(sj *batch.SequentialJob) string {
	last := sj.Status.LastAction
	message := fmt.Sprintf("the SequentialJob was retried from step %q", last.Step)
	if last.Step == "" {
		message = "the SequentialJob was retried from its first step"
	}
	if last.Attempt > 0 {
		message += fmt.Sprintf(" as attempt %d", last.Attempt)
	}
	if suspended(sj) {
		message += "; it stays suspended until it is resumed"
	}
	return message
}

// where says at which point of the sequence an action took effect.
func where(last *batch.SequentialJobLastAction) string {
	switch {
	case last.Step == "":
		return "before its first step started"
	case last.Attempt == 0:
		return fmt.Sprintf("before step %q started", last.Step)
	}
	return fmt.Sprintf("in attempt %d of step %q", last.Attempt, last.Step)
}

// nothing is the response to a request for what is so already.
func nothing(sj *batch.SequentialJob, message string) *batch.SequentialJobActionStatus {
	at := currentOf(sj)
	answer := &batch.SequentialJobActionStatus{UID: sj.UID, Attempt: at.attempt(), Message: message}
	if len(sj.Status.Steps) > 0 {
		answer.Step = at.name
	}
	return answer
}
