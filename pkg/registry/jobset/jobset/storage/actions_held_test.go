// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// held is what the controller makes of a set that started before the backup and has no Jobs after the restore.
func held(js *jobset.JobSet) {
	if n := len(js.Status.Attempts); n > 0 {
		js.Status.Attempts[n-1].EndTime, js.Status.Attempts[n-1].Outcome = micro(30), jobset.OutcomeSuspended
	}
	js.Status.Conditions = append(js.Status.Conditions, metav1.Condition{
		Type: jobset.ConditionHeld, Status: metav1.ConditionTrue, Reason: "RestoredFromBackup", LastTransitionTime: metav1.NewTime(begin),
	})
}

func TestActionsOnHeldSets(t *testing.T) {
	also := func(change func(*jobset.JobSet)) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) { change(js); held(js) }
	}
	suspend := func(js *jobset.JobSet) { queued(js); js.Spec.Suspend = ptr.To(true) }
	for name, tc := range map[string]struct {
		action  string
		state   func(*jobset.JobSet)
		attempt *batch.ActionPreconditions
		want    string
		// wantHeld and wantSuspended are of the set afterwards.
		wantHeld, wantSuspended bool
	}{
		"resume":                            {action: "resume", state: held, want: "the JobSet was resumed as attempt 2"},
		"resume with its attempt":           {action: "resume", state: held, attempt: at(1), want: "the JobSet was resumed as attempt 2"},
		"resume with another attempt":       {action: "resume", state: held, attempt: at(7), want: "preconditions.attempt is 7, but attempt 1 is current", wantHeld: true},
		"resume of one that was suspended":  {action: "resume", state: also(suspended), want: "the JobSet was resumed as attempt 2"},
		"resume of one in a queue":          {action: "resume", state: also(queued), want: "the JobSet was resumed as attempt 2"},
		"resume of one with an owner":       {action: "resume", state: also(owned), want: "the JobSet was resumed as attempt 2"},
		"resume of one that waits in queue": {action: "resume", state: also(suspend), want: `the JobSet is no longer held; queue "team" (label kueue.x-k8s.io/queue-name) decides when it runs`, wantSuspended: true},
		"suspend":                           {action: "suspend", state: held, want: "the JobSet was suspended; it is held, too, until it is resumed", wantHeld: true, wantSuspended: true},
		"restart":                           {action: "restart", state: held, want: "the JobSet is held, because the store was restored from a backup; resume it instead", wantHeld: true},
		"cancel":                            {action: "cancel", state: held, want: "the JobSet was cancelled while no attempt was running"},
	} {
		t.Run(name, func(t *testing.T) {
			js := train(tc.state)
			answer, err := all[tc.action](js, tc.attempt, call())
			got := text(err)
			if err == nil {
				got = answer.Message
			}
			isHeld := meta.IsStatusConditionTrue(js.Status.Conditions, jobset.ConditionHeld)
			if !strings.Contains(got, tc.want) || isHeld != tc.wantHeld || ptr.Deref(js.Spec.Suspend, false) != tc.wantSuspended {
				t.Errorf("%q, held %t, suspended %v", got, isHeld, js.Spec.Suspend)
			}
		})
	}
}

// TestResumingAHeldSetTwice: the second request with the same attempt gets the answer to the first one.
func TestResumingAHeldSetTwice(t *testing.T) {
	js := train(held)
	first, err := all["resume"](js, at(1), call())
	if err != nil || first.User != "alice" || first.Attempt != 2 {
		t.Fatalf("%+v, %v", first, err)
	}
	c := meta.FindStatusCondition(js.Status.Conditions, jobset.ConditionHeld)
	if c.Reason != actions.ReasonResumed || c.Message != "resumed by alice" || !c.LastTransitionTime.Equal(&second) {
		t.Errorf("condition %+v", c)
	}
	again, err := all["resume"](js, at(1), call(func(c *actions.Call) { c.User = "carol" }))
	if err != nil || again.User != "alice" || again.Attempt != 2 {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestEditsOfHeldSets: only an edit by which a person resumes the set ends the hold.
func TestEditsOfHeldSets(t *testing.T) {
	paused := func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) }
	for name, tc := range map[string]struct {
		before, after func(*jobset.JobSet)
		want          bool
	}{
		"another edit":         {func(*jobset.JobSet) {}, func(js *jobset.JobSet) { js.Spec.FailurePolicy.MaxRestarts = 9 }, true},
		"suspended":            {func(*jobset.JobSet) {}, paused, true},
		"resumed":              {paused, func(*jobset.JobSet) {}, false},
		"resumed by the queue": {func(js *jobset.JobSet) { queued(js); paused(js) }, queued, true},
	} {
		prev, next := train(held, tc.before), train(held, tc.after)
		actions.RecordEdit(next, prev, call())
		if got := meta.IsStatusConditionTrue(next.Status.Conditions, jobset.ConditionHeld); got != tc.want {
			t.Errorf("%s: held %t", name, got)
		}
	}
}
