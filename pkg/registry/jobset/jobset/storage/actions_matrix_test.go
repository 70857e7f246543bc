// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

type action func(*jobset.JobSet, *batch.ActionPreconditions, actions.Call) (*batch.JobSetActionStatus, error)

// all are the actions in their plainest form.
var all = map[string]action{
	"restart": func(js *jobset.JobSet, p *batch.ActionPreconditions, c actions.Call) (*batch.JobSetActionStatus, error) {
		return actions.Restart(js, &batch.JobSetRestartSpec{Scope: batch.RestartScopeJobSet, Preconditions: p}, c)
	},
	"suspend": func(js *jobset.JobSet, p *batch.ActionPreconditions, c actions.Call) (*batch.JobSetActionStatus, error) {
		return actions.Suspend(js, &batch.JobSetActionSpec{Preconditions: p}, c)
	},
	"resume": func(js *jobset.JobSet, p *batch.ActionPreconditions, c actions.Call) (*batch.JobSetActionStatus, error) {
		return actions.Resume(js, &batch.JobSetActionSpec{Preconditions: p}, c)
	},
	"cancel": func(js *jobset.JobSet, p *batch.ActionPreconditions, c actions.Call) (*batch.JobSetActionStatus, error) {
		return actions.Cancel(js, &batch.JobSetActionSpec{Preconditions: p}, c)
	},
	"retry": func(js *jobset.JobSet, p *batch.ActionPreconditions, c actions.Call) (*batch.JobSetActionStatus, error) {
		return actions.Retry(js, &batch.JobSetRetrySpec{Preconditions: p}, c)
	},
}

// TestEveryActionInEveryState says for each action in each state what it answers, or after "!" why it is refused.
func TestEveryActionInEveryState(t *testing.T) {
	const (
		deleting  = "! the JobSet is being deleted; recreate it after it is gone"
		foreign   = `! the JobSet is managed by the controller "example.com/other" (spec.managedBy); use that controller instead`
		remote    = "! Kueue runs the JobSet in another cluster (spec.managedBy is kueue.x-k8s.io/multikueue); "
		there     = remote + "restart it in the cluster that status.clusterName of its Workload names"
		toStop    = remote + "to suspend it, set spec.active of its Workload to false"
		toGoOn    = remote + "to resume it, set spec.active of its Workload to true"
		again     = remote + "recreate the JobSet instead"
		restarted = "the JobSet was restarted as attempt 2"
		tooEarly  = "! the JobSet has not finished, and only a failed JobSet can be retried; restart it instead"
		stays     = "! the JobSet is suspended, and only a failed JobSet can be retried; resume it instead"
		hasFailed = "! the JobSet has failed; there is nothing to "
		hasDone   = "! the JobSet has completed; there is nothing to "
		queue     = `! queue "team" (label kueue.x-k8s.io/queue-name) decides when the JobSet runs`
		toSuspend = queue + "; to suspend it, set spec.active of its Workload to false"
		toResume  = queue + ", and starts it as soon as there is quota; if its Workload was deactivated, set spec.active of the Workload to true"
		owner     = `! the owner TrainJob "big" decides when the JobSet runs; `
		asleep    = "! the JobSet is suspended; resume it instead"
		decides   = `queue "team" (label kueue.x-k8s.io/queue-name) decides when it runs`
		waiting   = "! the JobSet is suspended; " + decides
		waits     = "! the JobSet is suspended, and only a failed JobSet can be retried; " + decides
		recreate  = "; recreate it to run it again"
		finished  = `! queue "team" (label kueue.x-k8s.io/queue-name) does not run a finished JobSet again; recreate the JobSet instead`
		unstarted = "the JobSet was cancelled while no attempt was running"
	)
	want := map[string]map[string]string{
		"restart": {
			"running": restarted, "queued": restarted, "owned": restarted, "new": restarted,
			"suspended": asleep, "queued suspended": waiting,
			"completed": hasDone + "restart; recreate it to run it again",
			"failed":    hasFailed + "restart; retry it instead", "cancelled": hasFailed + "restart; retry it instead",
			"queued failed": hasFailed + "restart" + recreate, "queued cancelled": hasFailed + "restart" + recreate,
			"owned failed": hasFailed + `restart; recreate the owner TrainJob "big" to run it again`, "suspended failed": hasFailed + "restart; retry it instead",
			"deleting": deleting, "foreign": foreign, "multikueue": there, "multikueue waits": there,
		},
		"suspend": {
			"running": "the JobSet was suspended, which ended attempt 1", "new": "the JobSet was suspended before it started",
			"suspended": "the JobSet is already suspended; nothing changed",
			"completed": hasDone + "suspend; recreate it to run it again",
			"failed":    hasFailed + "suspend; retry it instead", "cancelled": hasFailed + "suspend; retry it instead",
			"queued failed": hasFailed + "suspend" + recreate, "queued cancelled": hasFailed + "suspend" + recreate,
			"owned failed": hasFailed + `suspend; recreate the owner TrainJob "big" to run it again`, "suspended failed": hasFailed + "suspend; retry it instead",
			"queued": toSuspend, "queued suspended": toSuspend, "owned": owner + "suspend the owner instead",
			"deleting": deleting, "foreign": foreign, "multikueue": toStop, "multikueue waits": toStop,
		},
		"resume": {
			"running": "the JobSet is not suspended; nothing changed", "new": "the JobSet is not suspended; nothing changed",
			"suspended": "the JobSet was resumed as attempt 2",
			"completed": hasDone + "resume; recreate it to run it again",
			"failed":    hasFailed + "resume; retry it instead", "cancelled": hasFailed + "resume; retry it instead",
			"queued failed": hasFailed + "resume" + recreate, "queued cancelled": hasFailed + "resume" + recreate,
			"owned failed": hasFailed + `resume; recreate the owner TrainJob "big" to run it again`, "suspended failed": hasFailed + "resume; retry it instead",
			"queued": toResume, "queued suspended": toResume, "owned": owner + "resume the owner instead",
			"deleting": deleting, "foreign": foreign, "multikueue": toGoOn, "multikueue waits": toGoOn,
		},
		"cancel": {
			"running": "the JobSet was cancelled, which ended attempt 1", "cancelled": "the JobSet was cancelled, which ended attempt 1",
			"queued": "the JobSet was cancelled, which ended attempt 1", "owned": "the JobSet was cancelled, which ended attempt 1",
			"new": unstarted, "suspended": unstarted, "queued suspended": unstarted, "queued cancelled": unstarted,
			"completed": hasDone + "cancel", "failed": hasFailed + "cancel", "queued failed": hasFailed + "cancel", "owned failed": hasFailed + "cancel", "suspended failed": hasFailed + "cancel",
			"deleting": deleting, "foreign": foreign, "multikueue": unstarted, "multikueue waits": unstarted,
		},
		"retry": {
			"failed": "the JobSet was retried as attempt 2", "cancelled": "the JobSet was retried as attempt 2",
			"suspended failed": "the JobSet no longer counts as failed, but stays suspended; resume it to run it",
			"running":          tooEarly, "new": tooEarly, "queued": tooEarly, "owned": tooEarly, "suspended": stays, "queued suspended": waits,
			"completed":     "! the JobSet has completed, and only a failed JobSet can be retried; recreate it to run it again",
			"queued failed": finished, "queued cancelled": finished,
			"owned failed": `! the owner TrainJob "big" does not run a finished JobSet again; recreate the owner instead`,
			"deleting":     deleting, "foreign": foreign, "multikueue": again, "multikueue waits": again,
		},
	}
	got := map[string]map[string]string{}
	for name, act := range all {
		got[name] = map[string]string{}
		for state, change := range states {
			js := train(change)
			before := js.DeepCopy()
			answer, err := act(js, nil, call())
			if err == nil {
				got[name][state] = answer.Message
				continue
			}
			const prefix = `Operation cannot be fulfilled on jobsets.jobset.x-k8s.io "train": `
			if message := text(err); apierrors.IsConflict(err) && len(message) > len(prefix) {
				got[name][state] = "! " + message[len(prefix):]
			}
			if diff := cmp.Diff(before, js); diff != "" {
				t.Errorf("%s, refused for a %s set, changed it (-before +after):\n%s", name, state, diff)
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
		action, state string
		attempt       int32
	}{
		"restart":                            {action: "restart", state: "running", attempt: 1},
		"restart before anything began":      {action: "restart", state: "new"},
		"suspend":                            {action: "suspend", state: "running", attempt: 1},
		"resume":                             {action: "resume", state: "suspended", attempt: 1},
		"cancel":                             {action: "cancel", state: "running", attempt: 1},
		"cancel of what does not run":        {action: "cancel", state: "suspended", attempt: 1},
		"cancel before anything began":       {action: "cancel", state: "new"},
		"retry":                              {action: "retry", state: "failed", attempt: 1},
		"retry of a cancelled set":           {action: "retry", state: "cancelled", attempt: 1},
		"retry of what stays suspended":      {action: "retry", state: "suspended failed", attempt: 1},
		"restart of a set of a queue":        {action: "restart", state: "queued", attempt: 1},
		"cancel of a set that awaits quota":  {action: "cancel", state: "queued suspended", attempt: 1},
		"restart of a set with a controller": {action: "restart", state: "owned", attempt: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train(states[tc.state])
			first, err := all[tc.action](js, at(tc.attempt), call())
			if err != nil {
				t.Fatal(err)
			}
			if first.User != "alice" || first.Time == nil || first.UID != "uid-1" {
				t.Errorf("the answer is %+v", first)
			}
			once := js.DeepCopy()
			other := call(func(c *actions.Call) { c.User, c.Now = "carol", now.Add(1) })
			second, err := all[tc.action](js, at(tc.attempt), other)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("answers (-first +second):\n%s", diff)
			}
			if diff := cmp.Diff(once, js); diff != "" {
				t.Errorf("the second request changed the set (-once +twice):\n%s", diff)
			}
		})
	}
}

// TestNothingChanges sends requests for a state that the set already has, without naming an attempt.
func TestNothingChanges(t *testing.T) {
	for action, state := range map[string]string{"suspend": "suspended", "resume": "running"} {
		js := train(states[state])
		before := js.DeepCopy()
		answer, err := all[action](js, nil, call())
		if err != nil || answer.User != "" || answer.Time != nil || answer.Attempt != 0 || answer.UID != "uid-1" {
			t.Errorf("%s: %v, %+v", action, err, answer)
		}
		if diff := cmp.Diff(before, js); diff != "" {
			t.Errorf("%s changed the set (-before +after):\n%s", action, diff)
		}
	}
}

func TestPreconditions(t *testing.T) {
	other := func(js *jobset.JobSet) { js.UID = "uid-2" }
	uid := train().UID
	cases := map[string]struct {
		change func(*jobset.JobSet)
		p      *batch.ActionPreconditions
		want   string
	}{
		"the uid and the attempt hold": {p: &batch.ActionPreconditions{UID: &uid, Attempt: at(1).Attempt}},
		"another uid": {change: other, p: &batch.ActionPreconditions{UID: &uid},
			want: "preconditions.uid is uid-1, but the JobSet has the UID uid-2: it was deleted and recreated"},
		"a later attempt": {p: at(2),
			want: "preconditions.attempt is 2, but attempt 1 is current (begun when the JobSet was started)"},
		"no attempt yet, of a running set": {p: at(0),
			want: "preconditions.attempt is 0, but attempt 1 is current (begun when the JobSet was started)"},
		"an attempt of a set that has none": {change: unseen, p: at(1),
			want: "preconditions.attempt is 1, but the JobSet has no attempt yet"},
	}
	for action, act := range all {
		for name, tc := range cases {
			if action == "retry" && tc.want == "" || action == "resume" && tc.want == "" {
				continue // a running set is refused for what it is
			}
			t.Run(action+": "+name, func(t *testing.T) {
				js := train()
				if tc.change != nil {
					tc.change(js)
				}
				_, err := act(js, tc.p, call())
				want := ""
				if tc.want != "" {
					want = `Operation cannot be fulfilled on jobsets.jobset.x-k8s.io "train": ` + tc.want
				}
				if diff := cmp.Diff(want, text(err)); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
			})
		}
	}
}
