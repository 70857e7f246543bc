// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
)

type action func(*batch.SequentialJob, *batch.SequentialJobPreconditions, actions.Call) (*batch.SequentialJobActionStatus, error)

func plain(do func(*batch.SequentialJob, *batch.SequentialJobActionSpec, actions.Call) (*batch.SequentialJobActionStatus, error)) action {
	return func(sj *batch.SequentialJob, p *batch.SequentialJobPreconditions, c actions.Call) (*batch.SequentialJobActionStatus, error) {
		return do(sj, &batch.SequentialJobActionSpec{Preconditions: p}, c)
	}
}

func retryFrom(step string) action {
	return func(sj *batch.SequentialJob, p *batch.SequentialJobPreconditions, c actions.Call) (*batch.SequentialJobActionStatus, error) {
		return actions.Retry(sj, &batch.SequentialJobRetrySpec{FromStep: step, Preconditions: p}, c)
	}
}

// all are the actions in their plainest form.
var all = map[string]action{
	"restart": plain(actions.Restart), "suspend": plain(actions.Suspend), "resume": plain(actions.Resume),
	"cancel": plain(actions.Cancel), "retry": retryFrom(""),
}

// TestEveryActionInEveryState says for each action in each state what it answers, or after "!" why it is refused.
func TestEveryActionInEveryState(t *testing.T) {
	const (
		deleting   = "! the SequentialJob is being deleted; recreate it after it is gone"
		foreign    = `! the SequentialJob is managed by the controller "example.com/other" (spec.managedBy); use that controller instead`
		restarted  = `step "train" was restarted as attempt 3`
		unstarted  = `" has not started, so there is nothing to restart; it starts by itself`
		asleep     = "! the SequentialJob is suspended; resume it instead"
		completed  = "! the SequentialJob has completed; there is nothing to "
		hasFailed  = "! the SequentialJob has failed (JobFailed); there is nothing to "
		tooLate    = "! the SequentialJob has failed (DeadlineExceeded); there is nothing to "
		wasStopped = "! the SequentialJob has failed (Cancelled); there is nothing to "
		again      = "; recreate it to run it again"
		retry      = "; retry it instead"
		inTrain    = ` in attempt 2 of step "train"`
		before     = ` before step "evaluate" started`
		atFirst    = ` before its first step started`
		only       = ", and only a failed SequentialJob can be retried; "
		running    = "! the SequentialJob has not finished" + only
		awake      = "the SequentialJob is not suspended; nothing changed"
		already    = "the SequentialJob is already suspended; nothing changed"
	)
	// switched is what suspend and resume have in common.
	switched := func(verb, past string, rest map[string]string) map[string]string {
		for state, answer := range map[string]string{
			"completed": completed + verb + again, "failed": hasFailed + verb + retry, "failed and suspended": hasFailed + verb + retry,
			"late": tooLate + verb + retry, "cancelled": wasStopped + verb + retry, "cancelled before the start": wasStopped + verb + retry, "deleting": deleting, "foreign": foreign,
		} {
			rest[state] = answer
		}
		return rest
	}
	want := map[string]map[string]string{
		"restart": switched("restart", "restarted", map[string]string{
			"pending": `! step "prepare` + unstarted, "between": `! step "evaluate` + unstarted,
			"starting": restarted, "running": restarted, "waiting": restarted, "erring": restarted,
			"suspended": asleep, "suspended before the start": asleep,
		}),
		"suspend": switched("suspend", "suspended", map[string]string{
			"pending": "the SequentialJob was suspended" + atFirst, "between": "the SequentialJob was suspended" + before,
			"starting": "the SequentialJob was suspended" + inTrain, "running": "the SequentialJob was suspended" + inTrain,
			"waiting": "the SequentialJob was suspended" + inTrain, "erring": "the SequentialJob was suspended" + inTrain,
			"suspended": already, "suspended before the start": already,
		}),
		"resume": switched("resume", "resumed", map[string]string{
			"pending": awake, "between": awake, "starting": awake, "running": awake, "waiting": awake, "erring": awake,
			"suspended": "the SequentialJob was resumed" + inTrain, "suspended before the start": "the SequentialJob was resumed" + atFirst,
		}),
		"cancel": {
			"pending": "the SequentialJob was cancelled" + atFirst, "between": "the SequentialJob was cancelled" + before,
			"suspended before the start": "the SequentialJob was cancelled" + atFirst,
			"starting":                   "the SequentialJob was cancelled" + inTrain, "running": "the SequentialJob was cancelled" + inTrain,
			"waiting": "the SequentialJob was cancelled" + inTrain, "erring": "the SequentialJob was cancelled" + inTrain,
			"cancelled before the start": "the SequentialJob was cancelled" + atFirst,
			"suspended":                  "the SequentialJob was cancelled" + inTrain, "cancelled": "the SequentialJob was cancelled" + inTrain,
			"completed": completed + "cancel", "failed": hasFailed + "cancel", "late": tooLate + "cancel", "failed and suspended": hasFailed + "cancel",
			"deleting": deleting, "foreign": foreign,
		},
		"retry": {
			"failed": `the SequentialJob was retried from step "train" as attempt 3`, "late": `the SequentialJob was retried from step "train" as attempt 3`,
			"cancelled":                  `the SequentialJob was retried from step "train" as attempt 3`,
			"cancelled before the start": "the SequentialJob was retried from its first step",
			"failed and suspended":       `the SequentialJob was retried from step "train" as attempt 3; it stays suspended until it is resumed`,
			"starting":                   running + "restart its current step instead", "running": running + "restart its current step instead",
			"waiting": running + "restart its current step instead", "erring": running + "restart its current step instead",
			"pending": running + `step "prepare" starts by itself`, "between": running + `step "evaluate" starts by itself`,
			"suspended":                  "! the SequentialJob is suspended" + only + "resume it instead",
			"suspended before the start": "! the SequentialJob is suspended" + only + "resume it instead",
			"completed":                  "! the SequentialJob has completed" + only + "recreate it to run it again",
			"deleting":                   deleting, "foreign": foreign,
		},
	}
	got := map[string]map[string]string{}
	for name, act := range all {
		got[name] = map[string]string{}
		for state, change := range states {
			sj := nightly(change)
			untouched := sj.DeepCopy()
			answer, err := act(sj, nil, call())
			if err == nil {
				got[name][state] = answer.Message
				continue
			}
			if message := text(err); apierrors.IsConflict(err) && len(message) > len(prefix) {
				got[name][state] = "! " + message[len(prefix):]
			}
			if diff := cmp.Diff(untouched, sj); diff != "" {
				t.Errorf("%s, refused for a sequence that is %s, changed it (-before +after):\n%s", name, state, diff)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// TestAskingTwice: with the attempt named, the same request changes nothing the second time, and is answered as the first.
func TestAskingTwice(t *testing.T) {
	cases := map[string]struct {
		action  string
		state   string
		attempt int32
	}{
		"restart":                         {"restart", "running", 2},
		"restart of what starts":          {"restart", "starting", 2},
		"suspend":                         {"suspend", "running", 2},
		"suspend before anything began":   {"suspend", "pending", 0},
		"resume":                          {"resume", "suspended", 2},
		"cancel":                          {"cancel", "running", 2},
		"cancel between two steps":        {"cancel", "between", 0},
		"cancel of what is suspended":     {"cancel", "suspended", 2},
		"retry":                           {"retry", "failed", 2},
		"retry of what was cancelled":     {"retry", "cancelled", 2},
		"retry after the deadline":        {"retry", "late", 2},
		"retry of what stays suspended":   {"retry", "failed and suspended", 2},
		"retry of what had never started": {"retry", "cancelled before the start", 0},
		"cancel of what had not started":  {"cancel", "pending", 0},
		"retry from an earlier step":      {"retry from an earlier step", "failed", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			act := all[tc.action]
			if act == nil {
				act = retryFrom("prepare")
			}
			sj := nightly(states[tc.state])
			first, err := act(sj, attempt(tc.attempt), call())
			if err != nil {
				t.Fatal(err)
			}
			if first.User != "alice" || !first.Time.Equal(stored) || first.UID != "uid-1" {
				t.Errorf("the answer is %+v", first)
			}
			once := sj.DeepCopy()
			second, err := act(sj, attempt(tc.attempt), later("carol", 1))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("answers (-first +second):\n%s", diff)
			}
			if diff := cmp.Diff(once, sj); diff != "" {
				t.Errorf("the second request changed the sequence (-once +twice):\n%s", diff)
			}
		})
	}
}

// TestNothingChanges sends requests for a state that the sequence already has, without naming an attempt.
func TestNothingChanges(t *testing.T) {
	for action, state := range map[string]string{"suspend": "suspended", "resume": "running"} {
		sj := nightly(states[state])
		before := sj.DeepCopy()
		answer, err := all[action](sj, nil, call())
		if err != nil || answer.User != "" || answer.Time != nil || answer.Attempt != 2 || answer.Step != "train" || answer.UID != "uid-1" {
			t.Errorf("%s: %v, %+v", action, err, answer)
		}
		if diff := cmp.Diff(before, sj); diff != "" {
			t.Errorf("%s changed the sequence (-before +after):\n%s", action, diff)
		}
	}
}
