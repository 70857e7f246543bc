// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// TestHistoryIsBounded restarts a set more often than its history can hold.
func TestHistoryIsBounded(t *testing.T) {
	js := train(unseen)
	c := call(func(c *actions.Call) { c.User = strings.Repeat("ä", 200) })
	for i := range 15 {
		c.Now = now.Add(time.Duration(i) * time.Minute)
		if _, err := actions.Restart(js, &batch.JobSetRestartSpec{Force: true}, c); err != nil {
			t.Fatal(err)
		}
	}
	attempts := js.Status.Attempts
	if len(attempts) != 10 || attempts[0].Number != 7 || attempts[9].Number != 16 || js.Status.Restarts != 15 {
		t.Errorf("%d restarts, history %+v", js.Status.Restarts, attempts)
	}
	if diff := cmp.Diff(strings.Repeat("ä", 128), attempts[9].User); diff != "" {
		t.Errorf("a long name (-want +got):\n%s", diff)
	}
	for attempt, want := range map[int32]string{0: "attempt is 0,", 3: "attempt is 3,", 5: "attempt is 5,", 17: "attempt is 17,"} {
		if _, err := actions.Restart(js, &batch.JobSetRestartSpec{Preconditions: at(attempt)}, c); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("of attempt %d: %v", attempt, err)
		}
	}
	if _, err := actions.Restart(js, &batch.JobSetRestartSpec{Preconditions: at(6)}, c); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "attempt 6 was restarted 9m ago") {
		t.Errorf("of the attempt before the oldest one listed: %v", err)
	}
	if answer, err := actions.Restart(js, &batch.JobSetRestartSpec{Preconditions: at(15)}, c); err != nil || answer.Attempt != 16 {
		t.Errorf("of the attempt before the current one: %v, %+v", err, answer)
	}
}

// TestFirstNumber: an attempt that ran before any was recorded has a number too.
func TestFirstNumber(t *testing.T) {
	running := train(func(js *jobset.JobSet) { js.Status.Attempts, js.Status.Restarts = nil, 3 })
	answer, err := actions.Restart(running, &batch.JobSetRestartSpec{Preconditions: at(0)}, call())
	if err != nil || answer.Attempt != 5 {
		t.Errorf("restart: %v, %+v", err, answer)
	}
	held := train(func(js *jobset.JobSet) { js.Status.Attempts, js.Spec.Suspend = nil, ptr.To(true) })
	if answer, err = actions.Resume(held, &batch.JobSetActionSpec{}, call()); err != nil || answer.Attempt != 1 {
		t.Errorf("resume: %v, %+v", err, answer)
	}
	lost := train(failed, func(js *jobset.JobSet) { js.Status.Attempts = nil })
	if answer, err = actions.Retry(lost, &batch.JobSetRetrySpec{}, call()); err != nil || answer.Attempt != 2 {
		t.Errorf("retry: %v, %+v", err, answer)
	}
}

// TestClocksThatDiffer: what happens after something is not recorded as before it.
func TestClocksThatDiffer(t *testing.T) {
	early := call(func(c *actions.Call) { c.Now = begin.Add(5 * time.Minute) }) // the set was ready after ten
	js := train()
	if _, err := actions.Restart(js, &batch.JobSetRestartSpec{}, early); err != nil {
		t.Fatal(err)
	}
	first, second := js.Status.Attempts[0], js.Status.Attempts[1]
	if !first.EndTime.Equal(micro(10)) || !second.RequestTime.Equal(micro(10)) || js.Status.ReadyMilliseconds != 0 {
		t.Errorf("ended %v, requested %v, ready for %d ms", first.EndTime, second.RequestTime, js.Status.ReadyMilliseconds)
	}
	js = train(suspended)
	answer, err := actions.Resume(js, &batch.JobSetActionSpec{}, early)
	if err != nil || !answer.Time.Equal(micro(20)) || !js.Status.Attempts[1].RequestTime.Equal(micro(20)) {
		t.Errorf("resumed: %v, %+v", err, answer)
	}
}
